"""One `corpora:` entry of the settings: its keys with types, bounds and descriptions, and what must fit together.

The Snakefile imports this module while it is parsed, so nothing heavy may be imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, ValidationInfo

from heads.base.files import UserError
from heads.base.names import CLASSIFICATION, OUT_OF_DOMAIN, PAPER_CORPORA, ROLES, SPLITS, TRANSLATION, WMT
from heads.config.corpus_parts import (
    Alignment,
    Distilled,
    File,
    FileSpec,
    GrammarTrees,
    Part,
    Parts,
    Treebank,
    TwoFiles,
    keys_of,
)
from heads.config.examples import ExampleCleaning, ExampleColumns, ExamplePart, ExampleParts, Labels, Table
from heads.config.fields import (
    Closed,
    Count,
    CountOrZero,
    Number,
    Share,
    Text,
    YesNo,
    meant,
    one_of,
    required,
    setting,
)
from heads.config.messages import fault, nearest, unknown, validated

Language = Annotated[Text, Field(pattern="^[A-Za-z-]+$"), meant("a language such as en, of letters and hyphens")]


@dataclass(frozen=True, slots=True)
class Cleaning(Closed):
    """Limits of the filters, see `heads.corpus.clean`."""

    max_words: Count = required("pairs with more words on a side go")
    max_length_ratio: Annotated[Number, Field(ge=1)] = required("so do those with so many times more words on one side")
    min_overlap: Share | None = setting(None, "so do subtitles that are shown together for less of their time")
    leakage: Annotated[str, one_of("either", "source")] = setting(
        "either", "pairs with a side that stands in dev or test go, or only those whose source does"
    )


class _Entry(Closed):
    """What all kinds of corpora have in common."""

    __slots__ = ()

    @classmethod
    def check_keys(cls, content: Any, info: ValidationInfo) -> Any:
        """As of every model; but first whatever makes it doubtful which kind of corpus is meant."""
        keys, either = keys_of(content), {one.name for kind in KINDS.values() for one in fields(kind)}
        if strange := [key for key in keys if key not in either]:
            raise fault(unknown(strange[0], either))
        if isinstance(content, Mapping) and "kind" not in keys:
            raise fault(" lacks the key kind: add it.")
        if keys and (kind := content["kind"]) not in [*KINDS]:
            raise fault(f".kind is {kind!r}, which is not a word known here.{nearest(str(kind), KINDS)}")
        return super().check_keys(content, info)

    @classmethod
    def about_unknown(cls, key: object) -> str:
        """Of a key that only another kind of corpus has."""
        return f".{key} is no setting of this kind of corpus: take it out."

    @property
    def languages(self) -> str:
        """What messages call the corpus by."""
        return "-".join(str(getattr(self, side)) for side in ("source", "target") if hasattr(self, side))


@dataclass(frozen=True, slots=True)
class Pairs(Closed):
    """How many pairs of each split."""

    train: Count = required("to train on, before cleaning")
    dev: Count = required("to tune on")
    test: Count = required("to score on")


@dataclass(frozen=True, slots=True)
class GrammarCorpus(_Entry):
    """The embedded corpus: how many pairs of each split."""

    kind: Annotated[str, one_of("grammar")] = required("grammar: the embedded one, English to Russian")
    source: Annotated[str, one_of("en")] = required("the source language")
    target: Annotated[str, one_of("ru")] = required("the target language")
    seed: CountOrZero = required("of the sentences")
    pairs: Pairs = required("how many pairs of each split")
    cleaning: Cleaning = required("what is taken out of training")


@dataclass(frozen=True, slots=True)
class GrammarPairsCorpus(_Entry):
    """Premises and hypotheses of the embedded grammar, nine pairs at a time, see `heads.corpus.grammar.inference`."""

    kind: Annotated[str, one_of("grammar_pairs")] = required("grammar_pairs: of premise and hypothesis, embedded")
    source: Annotated[str, one_of("en")] = required("the language of the sentences")
    seed: CountOrZero = required("of the sentences")
    pairs: Pairs = required("how many pairs of each split, best a multiple of nine")


Alignments = Mapping[Annotated[str, one_of("dev", "test")], Alignment]
HeldOut = Annotated[Mapping[Annotated[str, one_of("dev", "test", ROLES)], Count], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class FilesCorpus(_Entry):
    """A corpus in files, by split and under `out_of_domain`, where there may be none.

    `hold_out` has the sizes of what is cut from train: dev and test where they have no parts, and source lines to be
    parsed for the roles of heads. `trees` is the treebank that heads are measured on, `parser_trees` the one that a
    parser learns from. `alignment` is of the lines of dev as they are written: all parts in a row, or those held out.
    """

    kind: Annotated[str, one_of("files")] = required("files: text on disk, behind URLs, or of sacrebleu")
    source: Language = required("the source language, such as en")
    target: Language = required("the target language")
    train: Parts = required("parts to train on, one behind the other")
    cleaning: Cleaning = required("what is taken out of training")
    folder: Text = setting(".", "where paths begin")
    dev: Parts = setting((), "to tune on; without any, hold_out says how many")
    test: Parts = setting((), "to score on; without any, hold_out says how many")
    out_of_domain: Parts = setting((), "a test set of another domain, for Michel et al.'s Fig 2")
    hold_out: HeldOut = setting(
        {}, "pairs cut from training for dev and test, and for roles lines to be parsed where roles.trees names own"
    )
    limit: Count | None = setting(None, "so many training pairs are kept, evenly from all parts")
    compared_with: Annotated[str, one_of(*PAPER_CORPORA)] = setting(
        WMT, "the corpus of Voita et al. whose numbers claims are held against: theirs of WMT and OpenSubtitles differ"
    )
    lowercase: YesNo = setting(False, "true: all of its text is made lower case, that of test sets too")
    trees: Treebank | None = setting(
        None, "parsed source-language sentences, for the roles of heads; or grammar: N, so many of the embedded grammar"
    )
    parser_trees: File | None = setting(None, "what Stanza learns from, where roles.trees names stanza or own")
    alignment: Alignments = setting({}, "what an aligner made of the lines of dev, for alignment heads; and of test")

    @property
    def parts(self) -> dict[str, Sequence[Part]]:
        """The parts by split, and those under `out_of_domain`."""
        return {split: getattr(self, split) for split in (*SPLITS, OUT_OF_DOMAIN)}


@dataclass(frozen=True, slots=True)
class ExamplesCorpus(_Entry):
    """Labelled examples in tables, or of the grammar: two sentences and a label, or one sentence and a label.

    `labels` has the label of every word that stands in the column of labels, apart from those of `unlabelled`, whose
    examples are left out. `hold_out` is as of FilesCorpus.
    """

    kind: Annotated[str, one_of("pairs_of_sentences")] = required("pairs_of_sentences: with a label each, in tables")
    source: Language = required("the language of the sentences")
    columns: ExampleColumns = required("where the tables have sentences and labels")
    labels: Labels = required("the labels as a list, or by the words that the tables have in their place")
    train: ExampleParts = required("tables to train on, one behind the other")
    cleaning: ExampleCleaning = required("what is taken out of training")
    folder: Text = setting(".", "where paths begin")
    unlabelled: tuple[Text, ...] = setting((), "words in place of a label, whose examples are left out everywhere")
    dev: ExampleParts = setting((), "to tune on; without any, hold_out says how many")
    test: ExampleParts = setting((), "to score on; without any, hold_out says how many")
    out_of_domain: ExampleParts = setting((), "a test set of another domain, for Michel et al.'s Fig 2")
    hold_out: Annotated[Mapping[Annotated[str, one_of("dev", "test")], Count], Field(min_length=1)] = setting(
        {}, "examples cut from training for dev and test"
    )
    limit: Count | None = setting(None, "so many training examples are kept, evenly from all tables")
    trees: Treebank | None = setting(
        None, "parsed sentences of the language, for the roles of heads; or grammar: N, so many of the embedded grammar"
    )

    @property
    def parts(self) -> dict[str, Sequence[ExamplePart]]:
        """The tables by split, and those under `out_of_domain`."""
        return {split: getattr(self, split) for split in (*SPLITS, OUT_OF_DOMAIN)}


GRAMMARS = ("grammar", "grammar_pairs")
"""Kinds of corpora that are written here, with gold trees."""
KINDS: dict[str, Any] = {
    "grammar": GrammarCorpus,
    "grammar_pairs": GrammarPairsCorpus,
    "files": FilesCorpus,
    "pairs_of_sentences": ExamplesCorpus,
}


def _kind(value: Any) -> str:
    kind = keys_of(value) and value.get("kind")
    return f"<{kind}>" if isinstance(kind, str) and kind in KINDS else "<files>"


AnyCorpus = GrammarCorpus | GrammarPairsCorpus | FilesCorpus | ExamplesCorpus
Corpus = Annotated[
    Annotated[GrammarCorpus, Tag("<grammar>")]
    | Annotated[GrammarPairsCorpus, Tag("<grammar_pairs>")]
    | Annotated[FilesCorpus, Tag("<files>")]
    | Annotated[ExamplesCorpus, Tag("<pairs_of_sentences>")],
    Discriminator(_kind),
]


def parse_corpus(entry: Mapping[str, Any]) -> AnyCorpus:
    """Read one `corpora:` entry. Raises UserError where a key is wrong, or where its keys contradict each other."""
    corpus: AnyCorpus = validated(Corpus, entry, "corpus", folder=str(entry.get("folder", ".")))
    check_corpus(corpus)
    return corpus


def check_corpus(corpus: AnyCorpus) -> None:
    """Raise UserError for keys that need or forbid one another."""
    if isinstance(corpus, GrammarCorpus | GrammarPairsCorpus):
        return
    pair = corpus.languages
    for split in ("dev", "test"):
        named = bool(corpus.parts[split])
        if named and split in corpus.hold_out:
            raise UserError(f"The {pair} corpus has both hold_out and {split}: keep one of the two.")
        if not named and split not in corpus.hold_out:
            raise UserError(f"The {pair} corpus has no {split} parts: name some, or give hold_out: {{{split}: N}}.")
    if isinstance(corpus, ExamplesCorpus):
        _check_columns(corpus)
    elif corpus.cleaning.min_overlap is not None:
        for part in corpus.parts["train"]:
            if not isinstance(part, TwoFiles) or part.overlap is None:
                raise UserError(
                    f"The {pair} corpus asks for min_overlap, but not every train part has an overlap file: "
                    "give each part its overlap or take min_overlap out of cleaning."
                )
    if isinstance(corpus.trees, GrammarTrees) and corpus.source != "en":
        raise UserError(
            f"The {pair} corpus has trees.grammar, but the grammar writes trees of en alone: "
            "name a treebank under trees, or take the key out."
        )
    known: dict[str, str] = {}
    for file in files_of(corpus):
        if file.url and file.sha256 and known.setdefault(file.url, file.sha256) != file.sha256:
            raise UserError(f"{file.url} has two different sha256 in one corpus: keep the right one.")


def _check_columns(corpus: ExamplesCorpus) -> None:
    """Raise UserError where some columns have names and some have numbers, or a word is both a label and none."""
    columns = corpus.columns
    used = [
        *columns.sentences,
        columns.label,
        *(name for parts in corpus.parts.values() for p in parts if isinstance(p, Table) for name in p.only),
    ]
    if len({isinstance(name, str) for name in used}) > 1:
        raise UserError(
            f"The {corpus.languages} corpus names some columns and counts others: name all of them where the first "
            "line of a table has names, else give numbers from 0."
        )
    if both := {*corpus.labels} & {*corpus.unlabelled}:
        raise UserError(
            f"The {corpus.languages} corpus has {min(both)!r} in labels and unlabelled: keep one of the two."
        )


def files_of(corpus: AnyCorpus) -> Iterator[FileSpec]:
    """Every file that a corpus names, treebanks and word alignments last."""
    return (file for _, file in files_by_key(corpus))


def files_by_key(setting: Any, key: str = "") -> Iterator[tuple[str, FileSpec]]:
    """Every file of `files_of` with the path of its key, such as `train.0.source`; of a part of a corpus as well."""
    if isinstance(setting, FileSpec):
        yield key, setting
        return
    if isinstance(setting, Distilled):
        yield from files_by_key(setting.files, key)
        return
    inner: Iterable[tuple[object, Any]] = ()
    if isinstance(setting, Closed):
        inner = ((one.name, getattr(setting, one.name)) for one in fields(setting))  # type: ignore[arg-type]
    elif isinstance(setting, Mapping):
        inner = setting.items()
    elif isinstance(setting, tuple):
        inner = enumerate(setting)
    for name, value in inner:
        yield from files_by_key(value, f"{key}.{name}" if key else str(name))


def has_gold(entry: Mapping[str, Any]) -> bool:
    """Whether a corpus brings trees: a grammar's own, or a treebank."""
    return entry["kind"] in GRAMMARS or "trees" in entry


LABELLED = ("pairs_of_sentences", "grammar_pairs")
"""Kinds of corpora of which a target is a label."""


def task_of(entry: Mapping[str, Any]) -> str:
    """What models are trained for on a corpus."""
    return CLASSIFICATION if entry["kind"] in LABELLED else TRANSLATION


def has_alignment(entry: Mapping[str, Any], split: str = "dev") -> bool:
    """Whether a corpus brings a word alignment of a split: the grammar's own, or an aligner's."""
    return entry["kind"] == "grammar" or split in entry.get("alignment", {})


def compared_flags(entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The flag that names experiments, by the entries of their corpora, whose numbers are not compared with WMT's."""
    found = {experiment: entry.get("compared_with", WMT) for experiment, entry in entries.items()}
    others = [f"{experiment}={corpus}" for experiment, corpus in found.items() if corpus != WMT]
    return ["--compared-with", *others] if others else []


def downloads_of(entry: Mapping[str, Any]) -> list[str]:
    """The distinct URLs of an entry in their order, for the `download` rule."""
    raw = [part.source for part in distilled_of(entry).values() if part.source]
    return list(dict.fromkeys(file.url for file in [*files_of(parse_corpus(entry)), *raw] if file.url))


def distilled_of(entry: Mapping[str, Any]) -> dict[str, Distilled]:
    """The distilled parts of an entry by what their files are called."""
    corpus = parse_corpus(entry)
    parts = chain.from_iterable(corpus.parts.values()) if isinstance(corpus, FilesCorpus) else ()
    return {part.name: part for part in parts if isinstance(part, Distilled)}


def checksums_of(entry: Mapping[str, Any]) -> dict[str, str]:
    """The SHA-256 of those URLs of an entry that have one."""
    return {file.url: file.sha256 for file in files_of(parse_corpus(entry)) if file.url and file.sha256}


def local_files_of(entry: Mapping[str, Any]) -> list[Path]:
    """The distinct local files of an entry in their order, for a rule's input."""
    return list(dict.fromkeys(file.path for file in files_of(parse_corpus(entry)) if file.path))

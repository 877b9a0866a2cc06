"""One `corpora:` entry of the settings: whether its keys fit together, its files, and what it provides.

The Snakefile imports this module while it is parsed, so nothing heavy may be imported.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.base.names import WMT
from heads.config.corpora import AnyCorpus, Corpus, ExamplesCorpus, GrammarCorpus, GrammarPairsCorpus
from heads.config.corpus_parts import Distilled, FileSpec, GrammarTrees, Table, TwoFiles
from heads.config.fields import Closed
from heads.config.messages import validated

GRAMMARS = ("grammar", "grammar_pairs")
"""Kinds of corpora that the embedded grammar writes, with gold trees."""
LABELLED = ("pairs_of_sentences", "grammar_pairs")
"""Kinds of corpora whose targets are labels."""


def parse_corpus(entry: Mapping[str, Any]) -> AnyCorpus:
    """Parse one `corpora:` entry; raise UserError if a key is wrong or keys contradict each other."""
    corpus: AnyCorpus = validated(Corpus, entry, "corpus", folder=str(entry.get("folder", ".")))
    check_corpus(corpus)
    return corpus


def check_corpus(corpus: AnyCorpus) -> None:
    """Raise UserError if a key of a corpus lacks another that it needs, or excludes one that is there."""
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
            f"The {pair} corpus has trees.grammar, but the grammar writes trees for en only: "
            "name a treebank under trees, or take the key out."
        )
    known: dict[str, str] = {}
    for file in files_of(corpus):
        if file.url and file.sha256 and known.setdefault(file.url, file.sha256) != file.sha256:
            raise UserError(f"{file.url} has two different sha256 in one corpus: keep the right one.")


def _check_columns(corpus: ExamplesCorpus) -> None:
    """Raise UserError if some columns have names and others numbers, or a word is in both labels and unlabelled."""
    columns = corpus.columns
    used = [
        *columns.sentences,
        columns.label,
        *(name for parts in corpus.parts.values() for p in parts if isinstance(p, Table) for name in p.only),
    ]
    if len({isinstance(name, str) for name in used}) > 1:
        raise UserError(
            f"The {corpus.languages} corpus names some columns and numbers others: name all of them if the first line "
            "of a table has names, else give numbers from 0."
        )
    if both := {*corpus.labels} & {*corpus.unlabelled}:
        raise UserError(
            f"The {corpus.languages} corpus has {min(both)!r} in labels and unlabelled: keep one of the two."
        )


def files_of(corpus: AnyCorpus) -> Iterator[FileSpec]:
    """Every file that a corpus names, treebanks and word alignments last."""
    return (file for _, file in files_by_key(corpus))


def files_by_key(setting: Any, key: str = "") -> Iterator[tuple[str, FileSpec]]:
    """Every file of a corpus, or of a part of one, with the path of its key, such as `train.0.source`."""
    if isinstance(setting, FileSpec):
        yield key, setting
        return
    if isinstance(setting, Distilled):
        yield from files_by_key(setting.files, key)
        return
    inner: Iterable[tuple[object, Any]] = ()
    if isinstance(setting, Closed):
        inner = iter(setting)
    elif isinstance(setting, Mapping):
        inner = setting.items()
    elif isinstance(setting, tuple):
        inner = enumerate(setting)
    for name, value in inner:
        yield from files_by_key(value, f"{key}.{name}" if key else str(name))


def has_gold(entry: Mapping[str, Any]) -> bool:
    """Whether a corpus has gold trees: those of the grammar, or a treebank."""
    return entry["kind"] in GRAMMARS or "trees" in entry


def compared_with(entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """EXPERIMENT=CORPUS for experiments compared with another corpus than WMT, from the entries of their corpora."""
    found = {experiment: entry.get("compared_with", WMT) for experiment, entry in entries.items()}
    return [f"{experiment}={corpus}" for experiment, corpus in found.items() if corpus != WMT]


def downloads_of(entry: Mapping[str, Any]) -> list[str]:
    """The distinct URLs of an entry in order, for the `download` rule."""
    raw = [part.source for part in distilled_of(entry).values() if part.source]
    return list(dict.fromkeys(file.url for file in [*files_of(parse_corpus(entry)), *raw] if file.url))


def distilled_of(entry: Mapping[str, Any]) -> dict[str, Distilled]:
    """The distilled parts of an entry by the name of their files."""
    parts = chain.from_iterable(parse_corpus(entry).parts.values())
    return {part.name: part for part in parts if isinstance(part, Distilled)}


def checksums_of(entry: Mapping[str, Any]) -> dict[str, str]:
    """The SHA-256 of each URL of an entry, if it is given."""
    return {file.url: file.sha256 for file in files_of(parse_corpus(entry)) if file.url and file.sha256}


def local_files_of(entry: Mapping[str, Any]) -> list[Path]:
    """The distinct local files of an entry in order, for a rule's input."""
    return list(dict.fromkeys(file.path for file in files_of(parse_corpus(entry)) if file.path))

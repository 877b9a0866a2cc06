"""One `corpora:` entry of the settings: whether its keys fit together, its files, and what it provides.

The Snakefile imports this module while it is parsed, so nothing heavy may be imported.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
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
    corpus: AnyCorpus = validated(Corpus, entry, "corpus")
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
    for file in files_of_corpus(corpus):
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


def files_of_corpus(corpus: AnyCorpus) -> Iterator[FileSpec]:
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


def has_gold(corpus: AnyCorpus) -> bool:
    """Whether a corpus has gold trees: those of the grammar, or a treebank."""
    return corpus.kind in GRAMMARS or corpus.has("trees")


def compared_with(corpora: Mapping[str, AnyCorpus]) -> list[str]:
    """EXPERIMENT=CORPUS for experiments compared with another corpus than WMT, from the corpora of each."""
    found = {experiment: getattr(corpus, "compared_with", WMT) for experiment, corpus in corpora.items()}
    return [f"{experiment}={corpus}" for experiment, corpus in found.items() if corpus != WMT]


def downloads_of(corpus: AnyCorpus, without: Collection[str] = ()) -> list[str]:
    """The distinct URLs of a corpus in order, for the `download` rule.

    without: leave out what is named under these keys, such as `trees` or `alignment.test`.
    """
    raw = [part.source for part in distilled_of(corpus, without).values() if part.source]
    return list(dict.fromkeys(file.url for file in [*_files_without(corpus, without), *raw] if file.url))


def local_files_of(corpus: AnyCorpus, without: Collection[str] = ()) -> list[Path]:
    """The distinct local files of a corpus in order, for a rule's input. without: as in `downloads_of`."""
    return list(dict.fromkeys(file.path for file in _files_without(corpus, without) if file.path))


def _files_without(corpus: AnyCorpus, without: Collection[str]) -> list[FileSpec]:
    return [file for key, file in files_by_key(corpus) if not any(f"{key}.".startswith(f"{one}.") for one in without)]


def distilled_of(corpus: AnyCorpus, without: Collection[str] = ()) -> dict[str, Distilled]:
    """The distilled parts of a corpus by the name of their files. without: leave out these splits."""
    parts = (part for split, named in corpus.parts.items() if split not in without for part in named)
    return {part.name: part for part in parts if isinstance(part, Distilled)}


def checksums_of(corpus: AnyCorpus) -> dict[str, str]:
    """The SHA-256 of each URL of a corpus, if it is given."""
    return {file.url: file.sha256 for file in files_of_corpus(corpus) if file.url and file.sha256}

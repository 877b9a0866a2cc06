"""What a `corpora:` entry of the settings says, as typed values.

Types and unknown keys are checked by the JSON schema before; what needs two keys at once is checked here.
The Snakefile imports this module while it is parsed, so nothing heavy may be imported.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from heads.base.files import UserError
from heads.base.names import OTHER, SPLITS

READABLE_LENGTH = 80


def download_name(url: str) -> str:
    """A file name for a URL: its readable end, with the file's ending, behind a short hash of all of it."""
    parts = urlsplit(url)
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{parts.netloc}{parts.path}").strip("-.")
    return f"{hashlib.sha256(url.encode()).hexdigest()[:10]}-{readable[-READABLE_LENGTH:]}"


@dataclass(frozen=True, slots=True)
class FileSpec:
    """One file: a local `path` or a `url` (exactly one is set), perhaps a `member` of that archive."""

    path: Path | None
    url: str | None
    member: str | None
    sha256: str | None

    def on_disk(self, downloads: Path) -> Path:
        """Where the file lies: itself, or its download."""
        return self.path if self.path is not None else downloads / download_name(self.url or "")

    def __str__(self) -> str:
        place = self.url or str(self.path)
        return f"{place}, member {self.member}" if self.member else place


@dataclass(frozen=True, slots=True)
class OpusOverlap:
    """Time overlaps as OPUS gives them: the alignment XML, and the `.ids` file with the link of each line."""

    links: FileSpec
    ids: FileSpec


@dataclass(frozen=True, slots=True)
class TwoFiles:
    """A part kept as two aligned files. `overlap` is OPUS's, or a file with one number a line."""

    source: FileSpec
    target: FileSpec
    overlap: FileSpec | OpusOverlap | None


@dataclass(frozen=True, slots=True)
class Columns:
    """A part kept as one file, a pair a line, cut at `separator`; columns count from 0."""

    file: FileSpec
    separator: str
    source_column: int
    target_column: int


@dataclass(frozen=True, slots=True)
class TestSet:
    """A part that is a test set of sacrebleu, such as wmt14."""

    name: str


Part = TwoFiles | Columns | TestSet


@dataclass(frozen=True, slots=True)
class Cleaning:
    """Limits of the filters, see `heads.corpus.clean`."""

    max_words: int
    max_length_ratio: float
    min_overlap: float | None
    leakage: str


@dataclass(frozen=True, slots=True)
class GrammarCorpus:
    """The embedded corpus: how many pairs of each split."""

    source: str
    target: str
    seed: int
    pairs: Mapping[str, int]
    cleaning: Cleaning


@dataclass(frozen=True, slots=True)
class FilesCorpus:
    """A corpus in files. `parts` by split and under `other`, where there may be none; `hold_out` has the sizes of what
    is cut from train: dev and test where they have no parts, and source lines to be parsed for the roles of heads.

    `trees` is the treebank that heads are measured on, `parser_trees` the one that a parser learns from.
    """

    source: str
    target: str
    parts: Mapping[str, Sequence[Part]]
    hold_out: Mapping[str, int]
    limit: int | None
    trees: FileSpec | None
    parser_trees: FileSpec | None
    cleaning: Cleaning


def parse_file(value: str | Mapping[str, Any], folder: Path) -> FileSpec:
    """Read a file's description: a path, `{path: ...}` or `{url: ...}`, perhaps with `member`, `sha256`.

    Raises UserError when a mapping has not exactly one of `path` and `url`, or a URL that is not http(s).
    """
    if isinstance(value, str):
        return FileSpec(folder / value, None, None, None)
    if ("path" in value) == ("url" in value):
        raise UserError(f"The file {dict(value)} of a corpus needs one of the keys path and url, not both.")
    sha256 = value.get("sha256", "unknown")
    if sha256 != "unknown" and not re.fullmatch("[0-9a-f]{64}", sha256):
        raise UserError(
            f"sha256 {sha256!r} of {value} is not 64 small hexadecimal digits: correct it or write unknown."
        )
    if "url" in value and urlsplit(value["url"]).scheme not in ("http", "https"):
        raise UserError(
            f"The url {value['url']!r} of a corpus does not begin with http:// or https://: use path for local files."
        )
    path = folder / value["path"] if "path" in value else None
    return FileSpec(path, value.get("url"), value.get("member"), None if sha256 == "unknown" else sha256)


def parse_part(value: Mapping[str, Any], folder: Path) -> Part:
    """Read one part of a split: `{source, target[, overlap]}`, `{columns, ...}` or `{sacrebleu}`."""
    if "sacrebleu" in value:
        return TestSet(value["sacrebleu"])
    if "columns" in value:
        file = parse_file(value["columns"], folder)
        return Columns(file, value["separator"], value["source_column"], value["target_column"])
    overlap: FileSpec | OpusOverlap | None = None
    if "overlap" in value:
        given = value["overlap"]
        if isinstance(given, Mapping) and "links" in given:
            overlap = OpusOverlap(parse_file(given["links"], folder), parse_file(given["ids"], folder))
        else:
            overlap = parse_file(given, folder)
    return TwoFiles(parse_file(value["source"], folder), parse_file(value["target"], folder), overlap)


def parse_cleaning(value: Mapping[str, Any]) -> Cleaning:
    """Read the filters' limits; `min_overlap` may be missing for none, `leakage` for the strict rule."""
    return Cleaning(
        value["max_words"],
        value["max_length_ratio"],
        value.get("min_overlap"),
        value.get("leakage", "either"),
    )


def parse_corpus(entry: Mapping[str, Any]) -> GrammarCorpus | FilesCorpus:
    """Read one `corpora:` entry. Raises UserError where its keys contradict each other."""
    cleaning = parse_cleaning(entry["cleaning"])
    if entry["kind"] == "grammar":
        return GrammarCorpus(entry["source"], entry["target"], entry["seed"], entry["pairs"], cleaning)
    folder = Path(entry.get("folder", "."))
    parts = {split: [parse_part(part, folder) for part in entry.get(split, [])] for split in (*SPLITS, OTHER)}
    trees, learnt = (parse_file(entry[key], folder) if key in entry else None for key in ("trees", "parser_trees"))
    corpus = FilesCorpus(
        entry["source"], entry["target"], parts, entry.get("hold_out", {}), entry.get("limit"), trees, learnt, cleaning
    )
    check_corpus(corpus)
    return corpus


def check_corpus(corpus: FilesCorpus) -> None:
    """Raise UserError for keys that need or forbid one another."""
    pair = f"{corpus.source}-{corpus.target}"
    if not corpus.parts["train"]:
        raise UserError(f"The {pair} corpus has no train parts: name at least one under train.")
    for split in ("dev", "test"):
        named = bool(corpus.parts[split])
        if named and split in corpus.hold_out:
            raise UserError(f"The {pair} corpus has both hold_out and {split}: keep one of the two.")
        if not named and split not in corpus.hold_out:
            raise UserError(f"The {pair} corpus has no {split} parts: name some, or give hold_out: {{{split}: N}}.")
    if corpus.cleaning.min_overlap is not None:
        for part in corpus.parts["train"]:
            if not isinstance(part, TwoFiles) or part.overlap is None:
                raise UserError(
                    f"The {pair} corpus asks for min_overlap, but not every train part has an overlap file: "
                    "give each part its overlap or take min_overlap out of cleaning."
                )
    known: dict[str, str] = {}
    for file in files_of(corpus):
        if file.url and file.sha256 and known.setdefault(file.url, file.sha256) != file.sha256:
            raise UserError(f"{file.url} has two different sha256 in one corpus: keep the right one.")


def files_of(corpus: GrammarCorpus | FilesCorpus) -> Iterator[FileSpec]:
    """Every file that a corpus names, the treebanks last."""
    if isinstance(corpus, GrammarCorpus):
        return
    for parts in corpus.parts.values():
        for part in parts:
            if isinstance(part, Columns):
                yield part.file
            elif isinstance(part, TwoFiles):
                yield from (part.source, part.target)
                if isinstance(part.overlap, OpusOverlap):
                    yield from (part.overlap.links, part.overlap.ids)
                elif part.overlap is not None:
                    yield part.overlap
    yield from (treebank for treebank in (corpus.trees, corpus.parser_trees) if treebank is not None)


def downloads_of(entry: Mapping[str, Any]) -> list[str]:
    """The distinct URLs of an entry in their order, for the `download` rule."""
    return list(dict.fromkeys(file.url for file in files_of(parse_corpus(entry)) if file.url))


def checksums_of(entry: Mapping[str, Any]) -> dict[str, str]:
    """The SHA-256 of those URLs of an entry that have one."""
    return {file.url: file.sha256 for file in files_of(parse_corpus(entry)) if file.url and file.sha256}


def local_files_of(entry: Mapping[str, Any]) -> list[Path]:
    """The distinct local files of an entry in their order, for a rule's input."""
    return list(dict.fromkeys(file.path for file in files_of(parse_corpus(entry)) if file.path))

"""A family of third-party models: how it is known, what is made of a folder of it, and what it is written as again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.interop.agreement import Pair
from heads.interop.fewer_in_saved import take_copies
from heads.interop.origin import Vocabularies
from heads.interop.original import OriginalFiles
from heads.model.encoder import Encoder
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.text.batches import TimedBatch
from heads.text.vocabulary import Vocabulary

NO_LANGUAGES = ("", "")
KeptIds = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What an import is told besides the folder."""

    prefix: str = ""
    """What each source sentence begins with."""
    labels: Sequence[str] = ()
    seed: int = 0
    """For weights that the model came without."""
    languages: tuple[str, str] = NO_LANGUAGES
    """Of source and target, as a multilingual model calls them."""
    embeds: bool = False
    """Whether a BERT that came without a classifier embeds sentences if there are no labels; else it gets a new one."""


@dataclass(frozen=True, slots=True)
class ForeignModel:
    """A third-party model that was read, and what is made of it."""

    model: Callable[[], Encoder]
    """Returns the model as one of ours, in evaluation mode."""
    vocabularies: Callable[[], Vocabularies]
    """Returns its vocabularies in our ids, and where it is from."""
    unused: Sequence[str] = ()
    """Settings of its authors that we do not use."""
    drawn: str = ""
    """What has to be said about weights that it came without."""


@dataclass(frozen=True, slots=True)
class Translation:
    """A translator that is to be written in the format of another program."""

    model: Transformer
    vocabularies: Sequence[Vocabulary]
    pairs: Sequence[Pair]
    """On these the written model is compared with ours."""
    searched: tuple[int, float]
    """Beam size and length penalty."""
    came_with: OriginalFiles | None = None
    """What an imported model came with, as its authors wrote it; None for one of ours."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Facts about the imported model."""
    quantization: str = "float32"
    aligning: Sequence[tuple[int, int]] | None = None
    """Layer and original number of the alignment heads for CTranslate2, if known."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A program that translates with the models of a format, on one core, and in which they are timed."""

    name: str
    translating: Callable[[Translation, Sequence[TimedBatch], Path], Callable[[], None]]
    """Writes a model into a folder; returns a function that translates batches greedily to their prescribed lengths."""
    reads: Callable[[ModelShape, OriginalFiles | None], bool] = lambda *_: True
    """Whether it is installed, and reads models of a shape that came with such files."""
    line_by_line: bool = False
    """Whether it takes one sentence at a time."""


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format in which a translator is written for another program."""

    write: Callable[[Translation, Path], float]
    """Writes into a folder, and returns the largest difference from ours of a log-probability, in nats."""
    refuse: Callable[[ModelShape, Sequence[Vocabulary], OriginalFiles | None], None] = lambda *_: None
    """Raises UserError if a shape, with its vocabularies and the files it came with, cannot be written so."""
    one_width: tuple[tuple[str, ...], ...] = ()
    """Groups of feed-forward stacks whose layers all have as many hidden units; empty if each has its own."""
    one_number: tuple[tuple[str, ...], ...] | None = None
    """Groups of kinds of attention whose layers all have as many heads, filled up with zeros; empty if each has its
    own; None if all heads that are gone are zeros."""
    own_names: bool = False
    """Whether the folder has its vocabularies under its own names, so that ours are left out."""
    own_files: bool = False
    """Whether it has all of the original files, so that no copies are put beside them."""
    exact: bool = True
    """Whether its numbers are as exact as ours, if they are not quantised."""
    engine: Engine | None = None
    """What its models are timed in; None: our own search."""


@dataclass(frozen=True, slots=True)
class Family:
    """All that differs between families of third-party models."""

    read: Callable[[OriginalFiles, ImportOptions], ForeignModel]
    exports: Mapping[str, ExportFormat] = field(default_factory=dict)
    """By the name of the format for users: what its models, once imported, are written as."""
    take_subwords: Callable[[Path, ModelShape, KeptIds], None] = take_copies
    """Leaves only these ids of ours, of source and target, in the copies of a model's original files; the shape is that
    of the model with all subwords."""


def refuse_languages(options: ImportOptions) -> None:
    """Raise UserError for languages, where a model has none to choose from."""
    if any(options.languages):
        raise UserError("--source-language and --target-language are for M2M100, NLLB and mBART: leave them out.")


def refuse_prefix(options: ImportOptions, why: str) -> None:
    """Raise UserError for a prefix, and say why there is none."""
    if options.prefix:
        raise UserError(f"this model {why}: leave the prefix out.")

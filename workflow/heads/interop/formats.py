"""The list of formats in which other toolkits write models; `heads.interop.families` reads and writes them."""

from pathlib import Path

from heads.base.files import UserError
from heads.base.names import TRANSLATION
from heads.base.packaged import place_of
from heads.base.stand_ins import PACKED, refuse_pointers
from heads.interop.bert.format import BERT
from heads.interop.fairseq.format import FAIRSEQ
from heads.interop.firefox.format import FIREFOX
from heads.interop.format import Format
from heads.interop.hub import model_type
from heads.interop.marian.format import MARIAN
from heads.interop.t5.format import T5

FORMATS = (BERT, FAIRSEQ, T5, FIREFOX, MARIAN)
"""If none of the formats of a task fits, the last one is used."""
MODEL_TYPES = {kind: called for each in FORMATS for kind, called in each.model_types.items()}
"""Names of other people's models by transformers' `model_type`."""


def format_of(name: str, task: str = TRANSLATION) -> tuple[Format, Path]:
    """The format and the path of an external model, given by a path or a name such as firefox/en-pt.

    Raises UserError if there is nothing of that name, only something packed or a pointer of Git LFS, or a model for
    another task.
    """
    place = place_of(name)
    kind = model_type(place)
    found = format_at(place, kind, task)
    others = [each for each in FORMATS if each.task != task]
    if task == TRANSLATION and any(kind in each.model_types for each in others):
        raise UserError(f"{name} is a {MODEL_TYPES[kind]}, which does not translate: name a model that does.")
    if task != TRANSLATION and any(each.fits(place, kind) for each in others):
        raise UserError(f"{name} translates and does not classify: name a BERT.")
    return found, place


def format_at(place: Path, kind: str, task: str) -> Format:
    """The format of a task that a folder or file is in, or else the last one of that task.

    kind: the `model_type` in its config.json, if any. Raises UserError if there is nothing, only something packed or a
    pointer of Git LFS.
    """
    refuse_pointers([place])
    if place.is_file() and place.suffix in PACKED:
        raise UserError(f"{place} is packed: unpack it, and give the folder with its files.")
    formats = [each for each in FORMATS if each.task == task]
    found = next((each for each in formats if each.fits(place, kind)), formats[-1])
    if not place.exists():
        raise UserError(found.not_there(place))
    return found


def saved_as(kind: str) -> Format:
    """The format of a model by its `model_type` in config.json; Marian's if no family has it."""
    return next((each for each in FORMATS if kind in each.model_types), MARIAN)

"""The formats of other toolkits' models, as far as planning needs them: the format of a folder, its files.

`heads.translation.opening` has their readers. A new format is one line in FORMATS, and one there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heads.base import bert, fairseq, marian, t5
from heads.base.files import UserError
from heads.base.names import CLASSIFICATION, TRANSLATION
from heads.base.packaged import place_of
from heads.base.stand_ins import PACKED, refuse_pointers
from heads.formats import marian_parts

Heads = dict[str, tuple[int, int]]
"""Layers and heads per layer for each kind of attention."""


@dataclass(frozen=True, slots=True)
class Format:
    """What is known about a format without reading any weights."""

    name: str
    task: str
    fits: Callable[[Path], bool]
    """Whether a folder or file is in this format."""
    files: Callable[[Path], Sequence[Path]]
    """All files that an import reads."""
    heads: Callable[[Path], Heads]
    """Empty if a folder does not say: the import, which reads all of it, reports what is wrong."""
    not_there: Callable[[Path], str]
    """The error message for a folder that does not exist."""


def _has_config(folder: Path) -> bool:
    return (folder / marian.CONFIG).is_file()


def _heads_of_firefox(place: Path) -> Heads:
    """Layers and heads per layer by kind of attention, from the options in the model file; empty if unreadable."""
    from heads.formats.marian_file import read
    from heads.formats.marian_shape import shape_of

    try:
        model = marian_parts.find_parts(place).model
        shape = shape_of(model, read(model).options())
    except UserError:
        return {}
    layers = {"enc_self": shape.encoder_layers, "dec_self": shape.decoder_layers, "dec_enc": shape.decoder_layers}
    if shape.recurrent:
        del layers["dec_self"]
    return {kind: (count, shape.heads) for kind, count in layers.items()}


FORMATS = (
    Format("bert", CLASSIFICATION, _has_config, bert.files_of, bert.heads_of, bert.not_there),
    Format("fairseq", TRANSLATION, fairseq.fits, fairseq.files_of, marian.heads_of, fairseq.not_there),
    Format("t5", TRANSLATION, t5.fits, t5.files_of, t5.heads_of, t5.not_there),
    Format("firefox", TRANSLATION, marian_parts.is_marian, marian_parts.files_of, _heads_of_firefox, marian.not_there),
    Format("marian", TRANSLATION, _has_config, marian.files_of, marian.heads_of, marian.not_there),
)
"""If none of the formats of a task fits, the last one is used."""


def format_of(name: str, task: str = TRANSLATION) -> tuple[Format, Path]:
    """The format and the path of an external model, given by a path or a name such as firefox/en-pt.

    Raises UserError if there is nothing of that name, only something packed or a pointer of Git LFS, or a model for
    another task.
    """
    place = place_of(name)
    refuse_pointers([place])
    if place.is_file() and place.suffix in PACKED:
        raise UserError(f"{place} is packed: unpack it, and give the folder with its files.")
    formats = [each for each in FORMATS if each.task == task]
    found = next((each for each in formats if each.fits(place)), formats[-1])
    if not place.exists():
        raise UserError(found.not_there(place))
    kind = marian.model_type(place)
    if task == TRANSLATION and kind == "bert":
        raise UserError(f"{name} is a BERT, which does not translate: name a model that does.")
    if task == CLASSIFICATION and (marian_parts.is_marian(place) or kind in ("marian", *fairseq.CLASSES, *t5.CLASSES)):
        raise UserError(f"{name} translates and does not classify: name a BERT.")
    return found, place

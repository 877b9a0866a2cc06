"""A folder of Marian's own format, such as Firefox's translators: its files, and how many heads its model has."""

from __future__ import annotations

from pathlib import Path

from heads.base.files import UserError
from heads.base.marian import CONFIG, LICENCES


def fits(place: Path) -> bool:
    """Whether a path is a model's file of Marian, or a folder with one, and none of transformers'."""
    from heads.formats.marian_parts import is_marian

    return not (place / CONFIG).is_file() and is_marian(place)


def files_of(place: Path) -> list[Path]:
    """The model's file, vocabularies, shortlist and what describes them, also to one engine alone (tokenizer.json)."""
    from heads.formats.marian_parts import find_parts

    parts = find_parts(place)
    folder = parts.model.parent
    shortlist = [parts.shortlist] if parts.shortlist else []
    described = sorted([*folder.glob("*.yml"), *folder.glob("*.json")])
    licences = [folder / name for name in LICENCES if (folder / name).is_file()]
    return list(dict.fromkeys([parts.model, *parts.vocabularies, *shortlist, *described, *licences]))


def heads_of(place: Path) -> dict[str, tuple[int, int]]:
    """Layers and heads of a layer by kind of attention, by the options that the model's file has.

    Empty where it cannot be read: the import says what is wrong.
    """
    from heads.formats.marian_file import read
    from heads.formats.marian_parts import find_parts
    from heads.formats.marian_shape import shape_of

    try:
        model = find_parts(place).model
        shape = shape_of(model, read(model).options())
    except (UserError, ValueError):
        return {}
    layers = {"enc_self": shape.encoder_layers, "dec_self": shape.decoder_layers, "dec_enc": shape.decoder_layers}
    if shape.recurrent:
        del layers["dec_self"]
    return {kind: (count, shape.heads) for kind, count in layers.items()}

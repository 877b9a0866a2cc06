"""A folder in Marian's own format, such as Firefox's translation models: its files and its number of heads."""

from __future__ import annotations

from pathlib import Path

from heads.base.files import UserError
from heads.base.marian import CONFIG, LICENCES


def fits(place: Path) -> bool:
    """Whether a path is a Marian model file or a folder with one, and not in transformers' format."""
    from heads.formats.marian_parts import is_marian

    return not (place / CONFIG).is_file() and is_marian(place)


def files_of(place: Path) -> list[Path]:
    """The model file, vocabularies, shortlist, licences and all YAML and JSON files, even those of one engine alone."""
    from heads.formats.marian_parts import find_parts

    parts = find_parts(place)
    folder = parts.model.parent
    shortlist = [parts.shortlist] if parts.shortlist else []
    described = sorted([*folder.glob("*.yml"), *folder.glob("*.json")])
    licences = [folder / name for name in LICENCES if (folder / name).is_file()]
    return list(dict.fromkeys([parts.model, *parts.vocabularies, *shortlist, *described, *licences]))


def heads_of(place: Path) -> dict[str, tuple[int, int]]:
    """Layers and heads per layer for each kind of attention, from the options in the model file.

    Empty if the file cannot be read: the import says what is wrong.
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

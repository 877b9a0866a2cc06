"""What is known of a model in Marian's own format without its weights."""

from pathlib import Path

from heads.base.files import UserError
from heads.base.names import TRANSLATION
from heads.interop.firefox.parts import find_parts, is_marian, model_files
from heads.interop.format import Format, Heads
from heads.interop.marian.format import not_there


def heads_of(place: Path) -> Heads:
    """Layers and heads per layer by kind of attention, from the options in the model file; empty if unreadable."""
    from heads.interop.firefox.file import read  # numpy, which planning does not need
    from heads.interop.firefox.shape import shape_of

    try:
        model = find_parts(place).model
        shape = shape_of(model, read(model).options())
    except UserError:
        return {}
    layers = {"enc_self": shape.encoder_layers, "dec_self": shape.decoder_layers, "dec_enc": shape.decoder_layers}
    if shape.recurrent:
        del layers["dec_self"]
    return {kind: (count, shape.heads) for kind, count in layers.items()}


def files_of(place: Path) -> list[Path]:
    """All files that an import reads."""
    return model_files(find_parts(place))


FIREFOX = Format("firefox", TRANSLATION, lambda place, _: is_marian(place), files_of, heads_of, not_there)

"""Export a model imported from Marian's own format back to it: a folder that its engines read, or plain float32.

What did not change keeps its original bytes. Pruned heads are zero rows of the output projection, since every layer in
Marian has the same number of heads: the file is no smaller, but its engines translate as the pruned model does.
E width of one head.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from heads.base.files import UserError
from heads.interop.firefox.file import write
from heads.interop.firefox.importing import NOTHING, FirefoxFolder, our_shape, parts_of, read_firefox, weight_names
from heads.interop.firefox.parts import model_files
from heads.interop.firefox.shape import FEEDFORWARD
from heads.interop.numbering import Numbering
from heads.interop.original import OriginalFiles
from heads.model.head_removal import module_name
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.translation.model_folder import ABOUT

PLAIN = "model.npz"
Numbers = NDArray[np.float32]


def write_firefox(model: Transformer, came_with: OriginalFiles | None, folder: Path, *, plain: bool = False) -> None:
    """Write the model, and all files that its engine needs, into a folder.

    All layers of the model have as many hidden units. came_with: its original files. plain: float32 numbers under
    Marian's names, as a `.npz`, instead of the original types. Raises UserError for a model that was not imported from
    Marian.
    """
    origin = origin_of(model.shape, came_with)
    assert came_with is not None
    units = model.shape.units("enc_ffn")[0]
    file = origin.file.with_tensors(tensors_of(model, origin)).with_option(FEEDFORWARD, units)
    for name, content in came_with.once(others_in).items():
        (folder / name).write_bytes(content)
    write(folder / (PLAIN if plain else origin.parts.model.name), file)


def others_in(files: OriginalFiles) -> dict[str, bytes]:
    """All files that an engine needs beside the model's, by name."""
    parts = files.once(parts_of)
    paths = (path for path in model_files(parts) if path != parts.model and path.name != ABOUT)
    return {path.name: path.read_bytes() for path in paths}


def origin_of(shape: ModelShape, came_with: OriginalFiles | None) -> FirefoxFolder:
    """The model in Marian's own format that one of this shape was made from. Raises UserError if there is none."""
    nothing = "the model was not imported from Marian's own format, whose files are needed: use another --format."
    if came_with is None:
        raise UserError(nothing)
    try:
        origin = came_with.once(read_firefox)
    except UserError:
        raise UserError(nothing) from None
    whole = our_shape(origin)
    if (whole.width, whole.target_subwords, whole.recurrent) != (shape.width, shape.target_subwords, shape.recurrent):
        raise UserError(f"{came_with.place} belongs to another model: export this one from where it was trained.")
    return origin


def tensors_of(model: Transformer, origin: FirefoxFolder) -> dict[str, Numbers]:
    """Our weights under Marian's names and in its shapes; pruned heads are as they came, but output zeros."""
    weights, before = model.state_dict(), origin.file.tensors()
    found = {theirs: _turned(weights[ours]) for ours, theirs in weight_names(origin.shape)}
    live = model.shape.live_heads
    prefixes = {module_name(kind, i): heads for kind in model.shape.kinds for i, heads in enumerate(live[kind])}
    width = model.shape.head_width
    for ours, theirs in weight_names(origin.shape):
        prefix, _, part = ours.rpartition(".")[0].rpartition(".")
        if prefix in prefixes and found[theirs].shape != before[theirs].shape:
            columns = [head * width + place for head in prefixes[prefix] for place in range(width)]
            whole = np.array(before[theirs])
            if part == "output":
                whole[:] = 0
                whole[columns] = found[theirs]
            else:
                whole[:, columns] = found[theirs]
            found[theirs] = whole
    return found | _embeddings(weights, origin, before)


def _turned(ours: Tensor) -> Numbers:
    """A weight in Marian's layout: input x output, or 1 x output."""
    plain: Numbers = ours.detach().cpu().float().numpy()
    return plain[None] if plain.ndim == 1 else np.ascontiguousarray(plain.T)


def _embeddings(weights: dict[str, Tensor], origin: FirefoxFolder, before: dict[str, Numbers]) -> dict[str, Numbers]:
    shape, (source, target) = origin.shape, origin.numberings
    sides = [("Wemb", "source", source)] if shape.one_embedding else [
        ("encoder_Wemb", "source", source), ("decoder_Wemb", "target", target)
    ]  # fmt: skip
    found = {
        name: _placed(weights[f"{side}_embedding.subwords.weight"], rows, before[name]) for name, side, rows in sides
    }
    if not shape.tied_output:
        name = "decoder_ff_logit_out_W"
        found[name] = np.ascontiguousarray(_placed(weights["projection.weight"], target, before[name].T).T)
    if shape.output_bias:
        name = "decoder_ff_logit_out_b"
        found[name] = _placed(weights["projection.bias"][:, None], target, before[name].T).T
    return found


def _placed(ours: Tensor, numbering: Numbering, before: Numbers) -> Numbers:
    """Our rows in Marian's order."""
    found, plain = np.array(before), ours.detach().cpu().float().numpy()
    theirs = np.array(numbering.rows)
    found[theirs[theirs != NOTHING]] = plain[theirs != NOTHING]
    return found

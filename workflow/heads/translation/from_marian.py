"""A Marian model of transformers as one of ours: the same function, with its pieces renumbered.

Ours have padding, start, end and unknown at ids of their own. Marian starts its decoder with the padding piece, so that
both our padding and our start have its row, each with half of its chance: what is left to all other pieces is the same.
Our own exports start from a piece of its own.
B batch, V pieces of a vocabulary, D width.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from heads.base.files import UserError
from heads.base.marian import CONFIG, TARGET_VOCAB, VOCAB
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.text.special_ids import BOS, PAD
from heads.translation.marian_folder import MarianFolder

ACTIVATIONS = {"relu": "relu", "silu": "silu", "swish": "silu", "gelu": "gelu"}
"""By transformers' words for them, ours."""
ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
NORMS = {
    "self_residual.norm": "self_attn_layer_norm",
    "cross_residual.norm": "encoder_attn_layer_norm",
    "feedforward_residual.norm": "final_layer_norm",
}
MAPS = {"feedforward.inner": "fc1", "feedforward.outer": "fc2"}
LOGITS_BIAS = "final_logits_bias"
SHARED, SOURCE, TARGET, PROJECTION = (
    *("model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"),
    "lm_head.weight",
)


@dataclass(frozen=True, slots=True)
class Numbering:
    """Which of the other vocabulary's ids stands at each of ours, and what the pieces are called."""

    rows: tuple[int, ...]
    names: tuple[str, ...]


def numbering(pieces: Sequence[str], *, pad: int, start: int, eos: int, unk: int) -> Numbering:
    """Ours of a vocabulary [V] with these special ids: V + 1 of them where padding and start are one piece there."""
    others = [number for number in range(len(pieces)) if number not in (pad, start, eos, unk)]
    rows = (pad, start, eos, unk, *others)
    names = [pieces[number] for number in rows]
    if start == pad:
        names[BOS] = next(name for name in ("<s>", "<start>", "<start of target>") if name not in pieces)
    return Numbering(rows, tuple(names))


def numberings_of(folder: MarianFolder) -> tuple[Numbering, Numbering]:
    """Ours of source and target. Raises UserError where the special pieces are not as Marian has them."""
    config, where = folder.config, folder.path / CONFIG
    pad, start, eos = (config[f"{name}_token_id"] for name in ("pad", "decoder_start", "eos"))
    found = []
    for pieces in folder.vocabularies:
        if "<unk>" not in pieces:
            raise UserError(f"{folder.path / VOCAB} has no <unk>: copy it again.")
        unk = pieces.index("<unk>")
        there = all(isinstance(number, int) and 0 <= number < len(pieces) for number in (pad, start, eos))
        if not there or len({pad, eos, unk}) < 3 or start in (eos, unk):
            raise UserError(
                f"{where}: padding {pad}, the decoder's start {start} and the end {eos} are not ids of their own in "
                f"{folder.path / VOCAB}: copy both again."
            )
        if pieces[pad] != folder.vocabularies[0][pad]:
            raise UserError(
                f"{where}: padding {pad} is {pieces[pad]} in {folder.path / TARGET_VOCAB}: copy both again."
            )
        found.append(numbering(pieces, pad=pad, start=start, eos=eos, unk=unk))
    return found[0], found[1]


def shape_of_marian(
    folder: MarianFolder, matrices: Mapping[str, Tensor], numberings: tuple[Numbering, Numbering]
) -> ModelShape:
    """Our shape of it. Raises UserError for what ours cannot have."""
    config, where = folder.config, folder.path / CONFIG
    for part in ("attention_heads", "ffn_dim"):
        if config[f"encoder_{part}"] != config[f"decoder_{part}"]:
            both = f"{config[f'encoder_{part}']} and {config[f'decoder_{part}']}"
            raise UserError(f"{where}: {part} is {both} in encoder and decoder, and no model here has two.")
    width, heads = config["d_model"], config["encoder_attention_heads"]
    if width % heads:
        raise UserError(f"{where}: d_model {width} does not divide into {heads} heads.")
    if config["activation_function"] not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise UserError(f"{where}: activation_function is {config['activation_function']!r}, and not one of {known}.")
    layers = {kind: config[f"{stack}_layers"] for kind, stack in STACKS.items()}
    source, target, projection = (matrices[name] for name in (SOURCE, TARGET, PROJECTION))
    return ModelShape(
        width=width,
        head_width=width // heads,
        feedforward=config["encoder_ffn_dim"],
        dropout=float(config["dropout"]),
        attention_dropout=float(config["attention_dropout"]),
        pre_norm=False,
        source_pieces=len(numberings[0].rows),
        target_pieces=len(numberings[1].rows),
        original_heads=heads,
        live_heads={kind: (tuple(range(heads)),) * layers[kind] for kind in STACKS},
        attention_biases=True,
        activation=ACTIVATIONS[config["activation_function"]],
        positions="halves",
        scaled_embedding=bool(config["scale_embedding"]),
        tied_projection=projection is target,
        shared_embedding=source is target and numberings[0].rows == numberings[1].rows,
    )


STACKS = {"enc_self": "encoder", "dec_self": "decoder", "dec_enc": "decoder"}


def model_of_marian(folder: MarianFolder) -> Transformer:
    """Our model, in evaluation mode. Raises UserError where weights are missing or do not fit the rest."""
    matrices, numberings = matrices_of(folder), numberings_of(folder)
    source, target = numberings
    model = Transformer(shape_of_marian(folder, matrices, numberings)).eval()
    weights = {ours: _taken(folder, folder.tensors.get(theirs), theirs) for ours, theirs in names_of(model.shape)}
    for ours, name, rows in (
        ("source_embedding.pieces.weight", SOURCE, source.rows),
        ("target_embedding.pieces.weight", TARGET, target.rows),
        ("projection.weight", PROJECTION, target.rows),
    ):
        weights[ours] = matrices[name][list(rows)]
    pieces = len(folder.vocabularies[1])
    bias = folder.tensors.get(LOGITS_BIAS, torch.zeros(pieces)).flatten()
    if len(bias) != pieces:
        raise UserError(f"{folder.path}: {LOGITS_BIAS} is of {len(bias)} pieces, and not of {pieces}.")
    weights["projection.bias"] = bias[list(target.rows)]
    if target.rows[PAD] == target.rows[BOS]:
        weights["projection.bias"][[PAD, BOS]] -= math.log(2)
    expected = model.state_dict()
    for name, value in expected.items():
        if weights[name].shape != value.shape:
            sizes = " and not ".join(" x ".join(map(str, part.shape)) for part in (weights[name], value))
            raise UserError(f"{folder.path}: the weights of {name} are {sizes}, as {CONFIG} would have it.")
    model.load_state_dict({name: weights[name] for name in expected})
    return model


def names_of(shape: ModelShape) -> Iterator[tuple[str, str]]:
    """Our and their name of every weight of a layer."""
    for stack, kind in (("encoder", "enc_self"), ("decoder", "dec_self")):
        for layer in range(shape.layers(kind)):
            for ours, theirs in _layer_names(decoder=stack == "decoder"):
                for part in ("weight", "bias"):
                    yield f"{stack}.{layer}.{ours}.{part}", f"model.{stack}.layers.{layer}.{theirs}.{part}"


def _layer_names(*, decoder: bool) -> Iterator[tuple[str, str]]:
    for ours, theirs in ATTENTIONS.items():
        if decoder or ours == "self_attention":
            yield from ((f"{ours}.{one}", f"{theirs}.{other}") for one, other in PROJECTIONS.items())
    yield from MAPS.items()
    yield from ((ours, theirs) for ours, theirs in NORMS.items() if decoder or not ours.startswith("cross"))


def matrices_of(folder: MarianFolder) -> dict[str, Tensor]:
    """Both embeddings and the projection; the same tensor where it is one, under whatever name it was saved."""
    tensors = folder.tensors
    shared = [SHARED] if folder.config["share_encoder_decoder_embeddings"] else []
    every = [SOURCE, TARGET, PROJECTION] if shared else []
    found: dict[str, Tensor] = {}
    for name, others in (
        (SOURCE, [*shared, *every]),
        (TARGET, [*shared, *every, PROJECTION]),
        (PROJECTION, [TARGET, *shared, *every]),
    ):
        there = next((other for other in (name, *others) if other in tensors), None)
        matrix = _taken(folder, None if there is None else tensors[there], name)
        pieces = len(folder.vocabularies[name != SOURCE])
        if len(matrix) != pieces:
            raise UserError(
                f"{folder.path} has a vocabulary that does not fit its weights, {pieces} pieces for {len(matrix)} rows "
                f"of {name}: take all from the same model."
            )
        found[name] = next((known for known in found.values() if torch.equal(known, matrix)), matrix)
    return found


def _taken(folder: MarianFolder, tensor: Tensor | None, name: str) -> Tensor:
    if tensor is None:
        raise UserError(f"{folder.path} has no weights called {name}: copy model.safetensors again.")
    return tensor

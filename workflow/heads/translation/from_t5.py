"""Convert a T5, mT5 or UMT5 of transformers to an equivalent model of ours, subwords renumbered (Raffel et al. 2020).

Where its logits are scaled, our last norm is. The decoder starts with padding, so our BOS gets its vector, and no
probability; MADLAD-400 starts with the unknown subword.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from heads.base import t5
from heads.base.files import UserError
from heads.base.marian import CONFIG
from heads.base.names import SIDES
from heads.model.shape import DISTANCES, ModelShape, full_heads
from heads.model.transformer import Transformer
from heads.text.added import pattern_of
from heads.text.encoding import vocabulary_of
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.text.vocabulary import ADDED
from heads.text.wordpieces import write_described_subwords
from heads.translation.authors_search import searched_by_its_authors, unused
from heads.translation.export_page import PREFIX_SUBWORDS
from heads.translation.from_marian import ACTIVATIONS, NEVER_LIKELY, Numbering, numbering
from heads.translation.importing import write_origin, write_sentencepiece
from heads.translation.marian_folder import filled
from heads.translation.model_folder import DESCRIBED
from heads.translation.saved_weights import weight_called
from heads.translation.t5_folder import PROJECTION, SHARED, T5Folder, embedding_in

SMOOTH = {**ACTIVATIONS, "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}
"""Our names of activations by transformers' names."""
MAPS = {"query": "q", "key": "k", "value": "v", "output": "o"}
PROBE = "a"
"""A word behind a prefix that must be cut as it is alone."""


def numbering_of(folder: T5Folder) -> Numbering:
    """Our numbering of both sides, with one id more than the model has: BOS."""
    return numbering(folder.names, unk=folder.names.index("<unk>"), **folder.special)


def shape_of_t5(folder: T5Folder, *, tied: bool) -> ModelShape:
    """The model's shape as one of ours. tied: whether the output matrix is the embedding's.

    Raises UserError for an activation that ours cannot have.
    """
    config, ours = folder.config, numbering_of(folder)
    told, gated = config["feed_forward_proj"], str(config["feed_forward_proj"]).startswith("gated-")
    name = "gelu_new" if told == "gated-gelu" else str(told).removeprefix("gated-")
    if name not in SMOOTH:
        known = ", ".join(SMOOTH)
        raise UserError(
            f"{folder.path / CONFIG}: feed_forward_proj is {told!r}, and not one of {known}, or one with gated- before."
        )
    start = start_of(ours)
    layers = config["num_layers"], config["num_decoder_layers"], config["num_decoder_layers"]
    kinds = full_heads(layers=1, heads=config["num_heads"])
    return ModelShape(
        width=config["d_model"],
        head_width=config["d_kv"],
        feedforward=config["d_ff"],
        dropout=float(config["dropout_rate"]),
        attention_dropout=float(config["dropout_rate"]),
        pre_norm=True,
        source_subwords=len(ours.rows),
        target_subwords=len(ours.rows),
        original_heads=config["num_heads"],
        live_heads={kind: heads * depth for (kind, heads), depth in zip(kinds.items(), layers, strict=True)},
        activation=SMOOTH[name],
        positions=DISTANCES,
        scaled_embedding=False,
        norm_epsilon=config["layer_norm_epsilon"],
        tied_projection=tied,
        shared_embedding=True,
        start_subword=start or 0,
        fixed_bias=True,
        nameless_subwords=ours.nameless,
        rms_norm=True,
        gated_units=gated,
        feedforward_biases=False,
        distance_buckets=config["relative_attention_num_buckets"],
        farthest_distance=config["relative_attention_max_distance"],
        distances_by_layer=config["model_type"] == "umt5",
        scaled_products=False,
        starts_with_padding=start == PAD,
    )


def start_of(ours: Numbering) -> int | None:
    """Our id of the subword that the decoder starts with; None if it is our BOS and stands for nothing else."""
    return next((number for number in (PAD, EOS, UNK) if ours.rows[number] == ours.rows[BOS]), None)


def model_of_t5(folder: T5Folder) -> Transformer:
    """Our Transformer with the weights of a folder, in evaluation mode.

    Raises UserError if weights are missing or do not fit the rest.
    """
    ours, tensors = numbering_of(folder), folder.tensors
    embedding = weight_called(folder.path, tensors, embedding_in(tensors))
    projection = weight_called(folder.path, tensors, PROJECTION) if PROJECTION in tensors else embedding
    for name, matrix in ((SHARED, embedding), (PROJECTION, projection)):
        if len(matrix) != len(folder.names):
            raise UserError(
                f"{folder.path}: {name} has {len(matrix)} rows for {len(folder.names)} subwords: take all files from "
                "the same model."
            )
    model = Transformer(shape_of_t5(folder, tied=torch.equal(embedding, projection)))
    weights = {ours: weight_called(folder.path, tensors, theirs) for ours, theirs in names_of(model.shape)}
    if folder.scaled:
        weights["decoder_norm.weight"] = weights["decoder_norm.weight"] * model.shape.width**-0.5
    for side in SIDES:
        weights[f"{side}_embedding.subwords.weight"] = embedding[list(ours.rows)]
    weights["projection.weight"] = projection[list(ours.rows)]
    weights["projection.bias"] = projection.new_zeros(len(ours.rows))
    if start_of(ours) is not None:
        weights["projection.bias"][BOS] = NEVER_LIKELY
    return filled(model, folder.path, weights)


def names_of(shape: ModelShape) -> Iterator[tuple[str, str]]:
    """Our name and transformers' name of every weight but the subword matrices, as pairs."""
    units = {"inner": "wi_0", "factor": "wi_1"} if shape.gated_units else {"inner": "wi"}
    for stack, kind in (("encoder", "enc_self"), ("decoder", "dec_self")):
        yield f"{stack}_norm.weight", f"{stack}.final_layer_norm.weight"
        parts = [("self", "SelfAttention"), *([("cross", "EncDecAttention")] if stack == "decoder" else [])]
        for layer in range(shape.layers(kind)):
            ours, theirs = f"{stack}.{layer}", f"{stack}.block.{layer}.layer"
            for place, (part, name) in enumerate(parts):
                yield f"{ours}.{part}_residual.norm.weight", f"{theirs}.{place}.layer_norm.weight"
                for one, other in MAPS.items():
                    yield f"{ours}.{part}_attention.{one}.weight", f"{theirs}.{place}.{name}.{other}.weight"
            yield f"{ours}.feedforward_residual.norm.weight", f"{theirs}.{len(parts)}.layer_norm.weight"
            for one, other in (*units.items(), ("outer", "wo")):
                yield f"{ours}.feedforward.{one}.weight", f"{theirs}.{len(parts)}.DenseReluDense.{other}.weight"
            if shape.distances_by_layer or not layer:
                table = f"{ours}.distances" if shape.distances_by_layer else f"{stack}_distances"
                yield f"{table}.weight", f"{theirs}.0.SelfAttention.relative_attention_bias.weight"


def write_t5_vocabularies(folder: T5Folder, place: Path, prefix: str) -> None:
    """Write the vocabulary of both sides into a folder, and the model's original files into a subfolder.

    prefix: text before each source. Raises UserError if it does not end where a word ends.
    """
    names = numbering_of(folder).names
    source, target = (place / f"{side}.model" for side in SIDES)
    for model in (source, target):
        _write_vocabulary(folder, model, names)
    first = prefix_of(source, prefix)
    if first:
        _write_vocabulary(folder, source, names, first)
    about: dict[str, Any] = {"model_type": folder.config["model_type"], "prefix": prefix}
    about[PREFIX_SUBWORDS] = [names[number] for number in first]
    about |= {ADDED: pattern_of(folder.added)} if folder.added else {}
    about |= {} if folder.segmenter else {DESCRIBED: True}
    about |= searched_by_its_authors(folder.path, folder.generation)
    write_origin(folder.path, t5.files_of(folder.path), t5.DESCRIBING, place, about)


def _write_vocabulary(folder: T5Folder, model: Path, names: Sequence[str], prefix: Sequence[int] = ()) -> None:
    if folder.segmenter:
        write_sentencepiece(model, folder.segmenter, names, folder.path / t5.SEGMENTER, folder.added, prefix)
    else:
        write_described_subwords(model, folder.described, names, prefix)


def prefix_of(vocabulary: Path, prefix: str) -> list[int]:
    """Our ids of a text before each source. Raises UserError if it would change how the source behind it is cut."""
    whole, alone = vocabulary_of(vocabulary).encode([f"{prefix}{PROBE}", PROBE])
    if whole[-len(alone) :] != alone:
        raise UserError(f'--prefix "{prefix}" does not end where a word ends: end it with a blank.')
    return whole[: -len(alone)]


def unused_of_t5(folder: T5Folder) -> list[str]:
    """The search settings of a model's authors that our search does not have, with their values."""
    rows, nameless = numbering_of(folder).rows, numbering_of(folder).nameless
    never = {rows[PAD], rows[UNK], rows[BOS], *rows[len(rows) - nameless :]} - {rows[EOS]}
    return unused(folder.generation, never, rows[BOS], rows[EOS])

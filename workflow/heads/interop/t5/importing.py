"""Convert a T5, mT5 or UMT5 of transformers to an equivalent model of ours, subwords renumbered (Raffel et al. 2020).

Where its logits are scaled, our last norm is. The decoder starts with padding, so our BOS gets its vector, and no
probability; MADLAD-400 starts with the unknown subword.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from heads.base.files import UserError
from heads.base.names import SIDES
from heads.interop.authors_search import searched_by_its_authors, unused
from heads.interop.hub import CONFIG, saved_files
from heads.interop.marian.importing import ACTIVATIONS
from heads.interop.numbering import NEVER_LIKELY, Numbering, numbering
from heads.interop.origin import Origin, Vocabularies, sentencepiece_in_our_ids
from heads.interop.saved_folder import filled
from heads.interop.saved_weights import weight_called
from heads.interop.t5.format import DESCRIBING, SEGMENTER
from heads.interop.t5.reading import PROJECTION, SHARED, T5Folder, embedding_in
from heads.model.shape import DISTANCES, ModelShape, full_heads
from heads.model.transformer import Transformer
from heads.text.added import pattern_of
from heads.text.encoding import vocabulary_of
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.text.stored import Stored
from heads.text.vocabulary import ADDED
from heads.text.wordpieces import subwords_as_described
from heads.translation.model_folder import DESCRIBED, PREFIX_SUBWORDS

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
    weights = {ours: weight_called(folder.path, tensors, theirs) for ours, theirs in weight_names(model.shape)}
    if folder.scaled:
        weights["decoder_norm.weight"] = weights["decoder_norm.weight"] * model.shape.width**-0.5
    for side in SIDES:
        weights[f"{side}_embedding.subwords.weight"] = embedding[list(ours.rows)]
    weights["projection.weight"] = projection[list(ours.rows)]
    weights["projection.bias"] = projection.new_zeros(len(ours.rows))
    if start_of(ours) is not None:
        weights["projection.bias"][BOS] = NEVER_LIKELY
    return filled(model, folder.path, weights)


def weight_names(shape: ModelShape) -> Iterator[tuple[str, str]]:
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


def vocabularies_of(folder: T5Folder, prefix: str) -> Vocabularies:
    """The vocabularies of both sides in our ids, and where the model is from.

    prefix: text before each source. Raises UserError if it does not end where a word ends.
    """
    names = numbering_of(folder).names
    target = _vocabulary(folder, names)
    first = prefix_of(folder, target, prefix)
    about: dict[str, Any] = {"model_type": folder.config["model_type"], "prefix": prefix}
    about[PREFIX_SUBWORDS] = [names[number] for number in first]
    about |= {ADDED: pattern_of(folder.added)} if folder.added else {}
    about |= {} if folder.segmenter else {DESCRIBED: True}
    about |= searched_by_its_authors(folder.path, folder.generation)
    origin = Origin(folder.path, saved_files(folder.path, DESCRIBING), DESCRIBING, about)
    return Vocabularies(_vocabulary(folder, names, first), target, origin)


def _vocabulary(folder: T5Folder, names: Sequence[str], prefix: Sequence[int] = ()) -> Stored:
    if folder.segmenter:
        origin = folder.path / SEGMENTER
        return sentencepiece_in_our_ids(folder.segmenter, names, origin, folder.added, prefix)
    return subwords_as_described(folder.described, names, prefix)


def prefix_of(folder: T5Folder, vocabulary: Stored, prefix: str) -> list[int]:
    """Our ids of a text before each source. Raises UserError if it would change how the source behind it is cut."""
    whole, alone = vocabulary_of(folder.path, vocabulary).encode([f"{prefix}{PROBE}", PROBE])
    if whole[-len(alone) :] != alone:
        raise UserError(f'--prefix "{prefix}" does not end where a word ends: end it with a blank.')
    return whole[: -len(alone)]


def unused_of(folder: T5Folder) -> list[str]:
    """The search settings of a model's authors that our search does not have, with their values."""
    ours = numbering_of(folder)
    return unused(folder.generation, ours.never, ours.rows[BOS], ours.rows[EOS])

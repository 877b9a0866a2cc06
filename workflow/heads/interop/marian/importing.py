"""Convert a Marian, M2M100, BART or mBART of transformers to an equivalent model of ours, subwords renumbered.

Our padding, BOS, EOS and unknown token each have their own id. Marian starts its decoder with the padding token, so
that both our padding and our BOS get its row, each with half its probability; all other subwords keep theirs. Our own
exports start with a separate token. M2M100, BART and mBART-50 start with EOS: our BOS gets the embedding of EOS, and no
probability. An mBART of 25 languages starts with the target's language, and its sources end with EOS and their
language: these are the target's BOS and the source's EOS. B batch, V subwords of a vocabulary, D width.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from heads.base.files import UserError
from heads.base.names import SIDES
from heads.interop import hub
from heads.interop.authors_search import searched_by_its_authors, unused
from heads.interop.hub import CONFIG, VOCAB, saved_files
from heads.interop.marian.format import DESCRIBING, TARGET_VOCAB
from heads.interop.marian.reading import PROJECTION, SOURCE, TARGET, MarianFolder, saved_as
from heads.interop.numbering import NEVER_LIKELY, Numbering, language_prefix, numbering
from heads.interop.origin import Origin, Vocabularies, sentencepiece_in_our_ids
from heads.interop.saved_folder import filled
from heads.interop.saved_weights import weight_called
from heads.model.shape import LEARNED, ModelShape
from heads.model.transformer import Transformer
from heads.text.added import pattern_of
from heads.text.special_ids import BOS, EOS, NAMELESS, PAD
from heads.text.vocabulary import ADDED
from heads.text.wordpieces import described_subwords, library, subwords_as_described
from heads.translation.model_folder import DESCRIBED

ACTIVATIONS = {"relu": "relu", "silu": "silu", "swish": "silu", "gelu": "gelu"}
"""Our names of activations by transformers' names."""
ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
LAYOUTS: Mapping[str, Mapping[str, Any]] = {
    "marian": {"pre_norm": False, "positions": "halves"},
    "m2m_100": {"pre_norm": True, "positions": "tensor2tensor"},
    "bart": {"pre_norm": False, "positions": LEARNED, "embedding_norm": True},
    "mbart": {"pre_norm": True, "positions": LEARNED, "embedding_norm": True},
}
"""The architecture of transformers' models by `model_type`."""
OFFSET = 2
"""Number of rows of learnt positions before that of the first subword."""
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
NORMS = {
    "self_residual.norm": "self_attn_layer_norm",
    "cross_residual.norm": "encoder_attn_layer_norm",
    "feedforward_residual.norm": "final_layer_norm",
}
MAPS = {"feedforward.inner": "fc1", "feedforward.outer": "fc2"}
LOGITS_BIAS = "final_logits_bias"


def numberings_of(folder: MarianFolder) -> tuple[Numbering, Numbering]:
    """Our numberings of source and target. Raises UserError if the special tokens are not those of such a model."""
    config, where = folder.config, folder.path / CONFIG
    marian = config["model_type"] == "marian"
    pad, found = config["pad_token_id"], []
    for subwords, (start, eos) in zip(folder.vocabularies, folder.starts_and_ends, strict=True):
        if "<unk>" not in subwords:
            raise UserError(f"{folder.path / VOCAB} has no <unk>: copy it again.")
        unk = subwords.index("<unk>")
        there = all(isinstance(number, int) and 0 <= number < len(subwords) for number in (pad, start, eos))
        if not there or len({pad, eos, unk}) < 3 or start == unk or (marian and start == eos):
            raise UserError(
                f"{where}: padding {pad}, the decoder's start {start} and the end {eos} are not ids of their own in "
                f"{folder.path / VOCAB}: copy both again."
            )
        if subwords[pad] != folder.vocabularies[0][pad]:
            raise UserError(
                f"{where}: padding {pad} is {subwords[pad]} in {folder.path / TARGET_VOCAB}: copy both again."
            )
        found.append(numbering(subwords, pad=pad, start=start, eos=eos, unk=unk))
    return found[0], found[1]


def shape_of_marian(
    folder: MarianFolder, matrices: Mapping[str, Tensor], numberings: tuple[Numbering, Numbering], first: int = 0
) -> ModelShape:
    """The model's shape as one of ours. first: as in `model_of_marian`. Raises UserError if ours cannot have it."""
    config, where = folder.config, folder.path / CONFIG
    width, heads, others = config["d_model"], config["encoder_attention_heads"], config["decoder_attention_heads"]
    if heads != others:
        both = f"{heads} and {others}"
        raise UserError(f"{where}: attention_heads is {both} in encoder and decoder, but has to be the same.")
    if width % heads:
        raise UserError(f"{where}: d_model {width} does not divide into {heads} heads.")
    if config["activation_function"] not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise UserError(f"{where}: activation_function is {config['activation_function']!r}, and not one of {known}.")
    kind, layout = config["model_type"], LAYOUTS[config["model_type"]]
    if kind == "m2m_100" and width % 2:
        raise UserError(f"{where}: d_model {width} is odd, but its positions need as many sines as cosines.")
    layers = {part: config[f"{stack}_layers"] for part, stack in STACKS.items()}
    units = {
        f"{stack[:3]}_ffn": (config[f"{stack}_ffn_dim"],) * config[f"{stack}_layers"] for stack in set(STACKS.values())
    }
    source, target, projection = (matrices[name] for name in (SOURCE, TARGET, PROJECTION))
    return ModelShape(
        width=width,
        head_width=width // heads,
        feedforward=config["encoder_ffn_dim"],
        live_units={} if config["encoder_ffn_dim"] == config["decoder_ffn_dim"] else units,
        dropout=float(config["dropout"]),
        attention_dropout=float(config["attention_dropout"]),
        pre_norm=layout["pre_norm"],
        source_subwords=len(numberings[0].rows),
        target_subwords=len(numberings[1].rows),
        original_heads=heads,
        live_heads={part: (tuple(range(heads)),) * layers[part] for part in STACKS},
        attention_biases=True,
        activation=ACTIVATIONS[config["activation_function"]],
        positions=layout["positions"],
        scaled_embedding=bool(config["scale_embedding"]),
        tied_projection=projection is target,
        shared_embedding=source is target and numberings[0].rows == numberings[1].rows,
        max_positions=config["max_position_embeddings"] if layout["positions"] == LEARNED else 0,
        embedding_norm="embedding_norm" in layout,
        # Positions are counted from the one after padding.
        first_position=config["pad_token_id"] + 1 if kind == "m2m_100" else 0,
        start_subword=EOS if numberings[1].rows[BOS] == numberings[1].rows[EOS] else 0,
        first_subword=first,
        fixed_bias=kind == "m2m_100",
        nameless_subwords=numberings[1].nameless,
    )


STACKS = {"enc_self": "encoder", "dec_self": "decoder", "dec_enc": "decoder"}


def model_of_marian(folder: MarianFolder, first: int = 0) -> Transformer:
    """Our Transformer with the weights of a folder, in evaluation mode.

    first: our id of the subword that every translation begins with, or 0. Raises UserError if weights are missing or do
    not fit the rest.
    """
    matrices, numberings = matrices_of(folder), numberings_of(folder)
    source, target = numberings
    model = Transformer(shape_of_marian(folder, matrices, numberings, first))
    weights = {ours: weight_called(folder.path, folder.tensors, theirs) for ours, theirs in weight_names(model.shape)}
    for ours in weights.keys() & {"source_embedding.positions.weight", "target_embedding.positions.weight"}:
        weights[ours] = weights[ours][OFFSET:]
    for ours, name, rows in (
        ("source_embedding.subwords.weight", SOURCE, source.rows),
        ("target_embedding.subwords.weight", TARGET, target.rows),
        ("projection.weight", PROJECTION, target.rows),
    ):
        weights[ours] = matrices[name][list(rows)]
    weights["projection.bias"] = _logits_bias(folder)[list(target.rows)]
    if target.rows[PAD] == target.rows[BOS]:
        weights["projection.bias"][[PAD, BOS]] -= math.log(2)
    if target.rows[EOS] == target.rows[BOS]:
        weights["projection.bias"][BOS] = NEVER_LIKELY
    return filled(model, folder.path, weights)


def _logits_bias(folder: MarianFolder) -> Tensor:
    """The bias of every row's logit [V].

    It may be missing, or end before rows without a subword, which transformers' resize_token_embeddings pads its
    matrices with. Raises UserError if it does not fit the subwords.
    """
    subwords = folder.vocabularies[1]
    bias = folder.tensors.get(LOGITS_BIAS, torch.zeros(len(subwords))).flatten()
    if len(bias) > len(subwords) or not all(map(NAMELESS.fullmatch, subwords[len(bias) :])):
        raise UserError(
            f"{folder.path}: {LOGITS_BIAS} is of {len(bias)} subwords, not {len(subwords)}: copy model.safetensors "
            "again."
        )
    return torch.cat([bias, bias.new_zeros(len(subwords) - len(bias))])


def weight_names(shape: ModelShape) -> Iterator[tuple[str, str]]:
    """Our name and transformers' name of every weight but subword matrices and logit bias, as pairs."""
    for side, stack in (("source", "encoder"), ("target", "decoder")):
        if shape.positions == LEARNED:
            yield f"{side}_embedding.positions.weight", f"model.{stack}.embed_positions.weight"
        norms = [(f"{side}_embedding.norm", "layernorm_embedding")] * shape.embedding_norm
        for ours, theirs in (*norms, *[(f"{stack}_norm", "layer_norm")] * shape.pre_norm):
            yield from ((f"{ours}.{part}", f"model.{stack}.{theirs}.{part}") for part in ("weight", "bias"))
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
    """Both embeddings and the projection, under whatever name they were saved; equal ones are the same tensor."""
    found: dict[str, Tensor] = {}
    for name in (SOURCE, TARGET, PROJECTION):
        matrix = weight_called(folder.path, folder.tensors, saved_as(folder.config, folder.tensors, name))
        subwords = len(folder.vocabularies[name != SOURCE])
        if len(matrix) != subwords:
            raise UserError(
                f"{folder.path} has a vocabulary that does not fit its weights, {subwords} subwords for {len(matrix)} "
                f"rows of {name}: take all files from the same model."
            )
        found[name] = next((known for known in found.values() if torch.equal(known, matrix)), matrix)
    return found


def vocabularies_of(folder: MarianFolder, prefix: str) -> Vocabularies:
    """The vocabularies of source and target in our ids, and where the model is from.

    Raises UserError if the vocabulary does not have the prefix, or needs one.
    """
    numberings = numberings_of(folder)
    first = language_prefix(folder.path / (VOCAB if folder.segmenters else hub.DESCRIBED), numberings[0], prefix)
    described = {} if folder.segmenters else _ended_by_eos(folder, numberings[0])
    found = []
    for number, (side, ours) in enumerate(zip(SIDES, numberings, strict=True)):
        begins = first if side == SIDES[0] else []
        if folder.segmenters:
            content, origin = folder.segmenters[number], folder.path / f"{side}.spm"
            found.append(sentencepiece_in_our_ids(content, ours.names, origin, folder.added, begins))
        else:
            found.append(subwords_as_described(described, ours.names, begins))
    about = {"prefix": prefix, **cutting(folder), **searched_by_its_authors(folder.path, folder.generation)}
    source, target = found
    return Vocabularies(source, target, Origin(folder.path, saved_files(folder.path, DESCRIBING), DESCRIBING, about))


def cutting(folder: MarianFolder) -> dict[str, Any]:
    """Facts about how texts are cut, for the pages of exports, where it is not by SentencePiece alone."""
    if not folder.segmenters:
        return {DESCRIBED: True}
    return {ADDED: pattern_of(folder.added)} if folder.added else {}


def _ended_by_eos(folder: MarianFolder, ours: Numbering) -> dict[str, Any]:
    """The description of a Marian's subwords. Raises UserError unless texts end with EOS and begin with nothing."""
    described = described_subwords(folder.path)
    found = library().Tokenizer.from_str(json.dumps(described)).encode("").ids
    if found != [ours.rows[EOS]]:
        raise UserError(
            f"{folder.path / hub.DESCRIBED} puts {found} around texts, not only {ours.names[EOS]} behind them: "
            "give a model whose texts end like that."
        )
    return described


def unused_of(folder: MarianFolder) -> list[str]:
    """The search settings of a model's authors that our search does not have, with their values."""
    ours = numberings_of(folder)[1]
    ignored = unused(folder.generation, ours.never, ours.rows[BOS], ours.rows[EOS])
    first = folder.generation.get("forced_bos_token_id")
    return ignored if first is None else [*ignored, f"forced_bos_token_id {first}"]

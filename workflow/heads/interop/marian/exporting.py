"""Export a trained model as transformers' MarianMTModel with tokeniser, equal to ours in every log-probability.

Marian has the same number of heads in every attention: pruned heads are zeros in its matrices, which add nothing. Its
positions are sines, then cosines; where ours alternate, the columns of the whole model are reordered. Ids are ours.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from heads.base.files import UserError, write_json
from heads.interop import hub
from heads.interop.agreement import POSITIONS
from heads.interop.marian.format import SOURCE_SPM, TARGET_SPM, TARGET_VOCAB
from heads.interop.marian.importing import LOGITS_BIAS, PROJECTIONS, weight_names
from heads.interop.marian.reading import PROJECTION, SHARED, SOURCE, TARGET
from heads.model.encoder import Encoder
from heads.model.head_removal import module_name
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.text.added import Added, described_token
from heads.text.special_ids import BOS, EOS, NAMELESS, PAD, UNK
from heads.text.vocabulary import Vocabulary
from heads.text.wordpieces import DescribedSubwords
from heads.translation.beam_search import never_said

EPSILON = 1e-5
"""Epsilon of the layer norms of every Marian model."""


def write_huggingface(
    model: Transformer,
    vocabularies: Sequence[Vocabulary],
    search: tuple[int, float],
    folder: Path,
    added: Mapping[str, Added] = MappingProxyType({}),
) -> None:
    """Write config, weights, tokeniser and search settings (beam size, length penalty) into a folder.

    added: how subwords that an import added to its vocabulary are found in texts. Raises UserError for a model that
    Marian cannot express.
    """
    shape = model.shape
    refuse_for_marian(shape, vocabularies)
    names = [[vocabulary.subword(number) for number in range(len(vocabulary))] for vocabulary in vocabularies]
    # Rows without a subword are the last ones.
    names = [[name for name in subwords if not NAMELESS.fullmatch(name)] for subwords in names]
    write_json(folder / hub.CONFIG, config_of(shape))
    generation: dict[str, Any] = {"num_beams": search[0], "length_penalty": search[1], "max_length": 512}
    # Tokens that we never generate are excluded there too.
    generation["bad_words_ids"] = [[number] for number in never_said(shape)]
    generation |= {"pad_token_id": PAD, "eos_token_id": EOS, "decoder_start_token_id": BOS, "forced_eos_token_id": EOS}
    write_json(folder / hub.GENERATION, generation)
    separate = names[0] != names[1]
    write_json(folder / hub.VOCAB, {name: number for number, name in enumerate(names[0])})
    if separate:
        write_json(folder / TARGET_VOCAB, {name: number for number, name in enumerate(names[1])})
    tokenizer: dict[str, Any] = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": separate}
    if split := vocabularies[0].added:
        tokenizer["added_tokens_decoder"] = {
            str(names[0].index(name)): described_token(name, one)
            for name, one in added.items()
            if split.fullmatch(name)
        }
    special = {"pad_token": names[1][PAD], "eos_token": names[1][EOS], "unk_token": names[1][UNK]}
    write_json(folder / hub.TOKENIZER, {**tokenizer, **special})
    for vocabulary, name in zip(vocabularies, (SOURCE_SPM, TARGET_SPM), strict=True):
        (folder / name).write_bytes(vocabulary.stored.content)
    tensors = {name: value.contiguous() for name, value in weights_of(model).items()}
    save_file(tensors, folder / hub.WEIGHTS, metadata={"format": "pt"})


def refuse_for_marian(shape: ModelShape, vocabularies: Sequence[Vocabulary]) -> None:
    """Raise UserError if transformers' Marian cannot have this shape, or cannot cut texts as these vocabularies do."""
    if any(isinstance(vocabulary, DescribedSubwords) for vocabulary in vocabularies):
        raise UserError(
            "transformers' Marian cuts texts with SentencePiece, but this model's tokenizer.json does it otherwise: "
            "use another --format."
        )
    if shape.pre_norm:
        raise UserError(
            "the model normalises before each sub-layer, but Marian after it: export it with --format ctranslate2 or "
            "onnx, or train one with model.pre_norm false."
        )
    if shape.recurrent:
        raise UserError("transformers' Marian does not support this model's recurrent decoder: use another --format.")
    if shape.positions == "tensor2tensor":
        raise UserError("transformers' Marian does not have the position signals of this model: use another --format.")
    if shape.original_heads * shape.head_width != shape.width:
        raise UserError("the heads do not add up to the model's width, as they must in Marian: use another --format.")
    if shape.norm_epsilon != EPSILON:
        raise UserError(
            f"layer norms have epsilon {shape.norm_epsilon}, but Marian's have {EPSILON}: use another --format."
        )


def config_of(shape: ModelShape) -> dict[str, Any]:
    """The contents of config.json."""
    sizes = {
        f"{stack}_{name}": value
        for stack, kind, units in (
            ("encoder", "enc_self", shape.units("enc_ffn")),
            ("decoder", "dec_self", shape.units("dec_ffn")),
        )
        for name, value in (
            ("layers", shape.layers(kind)),
            ("attention_heads", shape.original_heads),
            ("ffn_dim", units[0]),
        )
    }
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": shape.source_subwords,
        "decoder_vocab_size": shape.target_subwords,
        "d_model": shape.width,
        **sizes,
        "activation_function": shape.activation,
        "dropout": shape.dropout,
        "attention_dropout": shape.attention_dropout,
        "scale_embedding": shape.scaled_embedding,
        "share_encoder_decoder_embeddings": shape.shared_embedding,
        "tie_word_embeddings": shape.tied_projection,
        "max_position_embeddings": POSITIONS,
        "pad_token_id": PAD,
        "bos_token_id": None,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": EOS,
    }


def weights_of(model: Transformer) -> dict[str, Tensor]:
    """Weights under Marian's names, shared matrices once."""
    shape, whole = model.shape, with_all_heads(model)
    found = {theirs: _turned(shape, whole[ours], ours) for ours, theirs in weight_names(shape)}
    matrices = {name: _turned(shape, value, name) for name, value in subword_matrices(model).items()}
    if shape.shared_embedding:
        found[SHARED] = matrices[TARGET]
    else:
        found |= {name: matrices[name] for name in (SOURCE, TARGET)}
    if not shape.tied_projection:
        found[PROJECTION] = matrices[PROJECTION]
        if shape.shared_embedding:
            # Without tied weights, transformers reads each of them under its own name.
            found |= {name: found[SHARED].clone() for name in (SOURCE, TARGET)}
    found[LOGITS_BIAS] = whole["projection.bias"][None]
    return found


def subword_matrices(model: Transformer) -> dict[str, Tensor]:
    """Both embeddings and the projection on the CPU, under transformers' names."""
    modules = (model.source_embedding.subwords, model.target_embedding.subwords, model.projection)
    names = (SOURCE, TARGET, PROJECTION)
    return {name: module.weight.detach().cpu() for name, module in zip(names, modules, strict=True)}


def with_all_heads(model: Encoder) -> dict[str, Tensor]:
    """Weights on the CPU, with zeros for pruned heads and for attention biases that the model does not have."""
    shape, state = model.shape, {name: value.detach().cpu() for name, value in model.state_dict().items()}
    whole, size = dict(state), shape.original_heads * shape.head_width
    for kind, layers in shape.live_heads.items():
        for layer, live in enumerate(layers):
            places = torch.tensor([head * shape.head_width + i for head in live for i in range(shape.head_width)])
            for part in PROJECTIONS:
                name = f"{module_name(kind, layer)}.{part}"
                axis = 1 if part == "output" else 0
                weight, bias = state[f"{name}.weight"], state.get(f"{name}.bias")
                shapes = (shape.width, size) if axis else (size, shape.width)
                whole[f"{name}.weight"] = weight.new_zeros(shapes).index_copy(axis, places.long(), weight)
                if bias is None or not axis:
                    empty = weight.new_zeros(shape.width if axis else size)
                    whole[f"{name}.bias"] = empty if bias is None else empty.index_copy(0, places.long(), bias)
    return whole


def _turned(shape: ModelShape, value: Tensor, name: str) -> Tensor:
    """The weight of this name with the columns of hidden states in Marian's order."""
    if shape.positions != "interleaved":
        return value
    order = torch.arange(shape.width)
    order = torch.cat([order[::2], order[1::2]])
    if "norm" in name or ".output." in name or ".outer." in name:
        return value[order]
    return value[:, order] if value.dim() == 2 else value

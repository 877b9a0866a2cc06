"""Export a trained model to CTranslate2's format, through its specs, equal to ours in every log-probability.

CTranslate2 has one number of heads per stack. Every attention is therefore filled up to the largest number in its
stack with heads whose matrices are zeros, which add nothing. The head width is stated, since it no longer follows from
the number of heads.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heads.base.files import UserError, read_tsv
from heads.interop.agreement import POSITIONS, Pair, largest_difference
from heads.interop.family import Engine, ExportFormat, Translation
from heads.model.attention import Attention
from heads.model.encoder import Embedding
from heads.model.shape import ModelShape
from heads.model.sublayers import CrossAttention, FeedForwardPart, Layer, SelfAttention, layers_of
from heads.model.transformer import Transformer
from heads.text.batches import TimedBatch
from heads.text.special_ids import BOS, EOS, UNK
from heads.text.vocabulary import Vocabulary

ACTIVATIONS = {"relu": "RELU", "silu": "SWISH", "gelu": "GELU", "gelu_tanh": "GELUTanh"}
PARTS = {
    "enc_self": "self_attention",
    "enc_ffn": "ffn",
    "dec_self": "self_attention",
    "dec_enc": "attention",
    "dec_ffn": "ffn",
}
"""CTranslate2's names of our sub-layers."""
NORMS = {"weight": "gamma", "bias": "beta"}
"""CTranslate2's names of a norm's parameters."""
STACKS = {"encoder": ("enc_self",), "decoder": ("dec_self", "dec_enc")}
"""The kinds of attention that have one number of heads in all layers of a stack."""
ROWS = "alignment_heads.tsv"
STEP = "output"
"""Programs that return attention with a translation report, for each subword, that of the step which outputs it."""

AligningHead = tuple[int, int]
"""Layer and original number of a cross-attention head."""


def refuse_for_ctranslate2(shape: ModelShape) -> None:
    """Raise UserError if CTranslate2 is not installed, or cannot have this shape."""
    try:
        import ctranslate2  # noqa: F401 - its writer needs it
    except ImportError as error:
        raise UserError(
            'ctranslate2 is not installed: pip install "heads[ctranslate2]", or use another format.'
        ) from error
    if shape.recurrent:
        raise UserError("CTranslate2 does not support this model's recurrent decoder: export it with --format onnx.")


def write_ctranslate2(
    model: Transformer,
    vocabularies: Sequence[Vocabulary],
    folder: Path,
    quantization: str = "float32",
    aligning: Sequence[AligningHead] | None = None,
) -> None:
    """Write model.bin, config.json and both vocabularies into a folder.

    aligning: alignment heads, best first, if known. config.json then lists them all as `alignment_heads`, pairs of
    layer and head in the numbering of the exported model. CTranslate2 itself (4.8) does not read that list for
    translation models: it returns the mean attention of the first N heads of one layer, so the alignment heads of the
    best head's layer are moved to the front. Raises UserError as `refuse_for_ctranslate2` does.
    """
    refuse_for_ctranslate2(model.shape)
    from ctranslate2 import specs  # may not be installed

    model, places = aligning_first(without_nameless(model), aligning or ())
    sizes = (model.shape.source_subwords, model.shape.target_subwords)
    names = [[one.subword(i) for i in range(size)] for one, size in zip(vocabularies, sizes, strict=True)]
    spec = _described(model, specs)
    if places:
        best = [layer for layer, _ in places].count(places[0][0])
        spec.decoder.alignment_layer, spec.decoder.alignment_heads = np.int16(places[0][0]), np.int16(best)
    if aligning is not None:
        spec.config.add_attribute("alignment_heads", places)
    spec.register_source_vocabulary(names[0])
    spec.register_target_vocabulary(names[1])
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = (names[1][i] for i in (BOS, EOS, UNK))
    # Only its own EOS can be added to a source: where that ends with its language, its reader adds both.
    spec.config.decoder_start_token, spec.config.add_source_eos = names[1][BOS], names[0][EOS] == names[1][EOS]
    spec.config.layer_norm_epsilon = layers_of(model.encoder)[0].feedforward_residual.norm.eps
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def agreement_of_ctranslate2(
    model: Transformer, vocabularies: Sequence[Vocabulary], folder: Path, pairs: Sequence[Pair]
) -> float:
    """Largest difference in a target subword's log-probability between our model and a folder's.

    Rows without a subword count for neither.
    """
    import ctranslate2

    model = without_nameless(model)
    translator = ctranslate2.Translator(str(folder), compute_type="default", inter_threads=1, intra_threads=1)
    named = [
        [[vocabulary.subword(i) for i in ids] for ids in side]
        for vocabulary, side in zip(vocabularies, zip(*pairs, strict=True), strict=True)
    ]
    ends = [vocabulary.subword(EOS) for vocabulary in vocabularies]
    named[0] = [[*subwords, *ends[:1] * (ends[0] != ends[1])] for subwords in named[0]]
    found = translator.score_batch(named[0], named[1])
    return largest_difference(model, pairs, [torch.tensor(scored.log_probs) for scored in found])


def without_nameless(model: Transformer) -> Transformer:
    """The model without the last target ids, which have no subword: its probabilities are those among all others.

    CTranslate2 has no other way to rule them out of every search.
    """
    shape = model.shape
    if not shape.nameless_subwords:
        return model
    source, target = shape.named_subwords
    smaller = Transformer(replace(shape, source_subwords=source, target_subwords=target, nameless_subwords=0))
    weights = model.state_dict()
    smaller.load_state_dict({name: weights[name][: len(value)] for name, value in smaller.state_dict().items()})
    return smaller.to(next(model.parameters())).train(model.training)


def _described(model: Transformer, specs: Any) -> Any:
    """The model as a CTranslate2 spec with its weights."""
    shape = model.shape
    live = shape.live_heads
    most = {stack: max(1, *(len(layer) for kind in kinds for layer in live[kind])) for stack, kinds in STACKS.items()}
    how = {"pre_norm": shape.pre_norm, "head_dim": shape.head_width, "layernorm_embedding": shape.embedding_norm}
    how |= {"rms_norm": shape.rms_norm, "ffn_glu": shape.gated_units}
    how["relative_attention_bias"] = bool(shape.distance_buckets)
    how["activation"] = getattr(specs.Activation, ACTIVATIONS[shape.activation])
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(shape.encoder_layers, most["encoder"], **how),
        specs.TransformerDecoderSpec(shape.decoder_layers, most["decoder"], **how),
    )
    for name, side, stack in (("encoder", "source", spec.encoder), ("decoder", "target", spec.decoder)):
        embedding: Embedding = getattr(model, f"{side}_embedding")
        if not shape.distance_buckets:
            stack.position_encodings.encodings = _numbers(embedding.signals(min(POSITIONS, shape.longest)))
        stack.scale_embeddings = shape.scaled_embedding
        if shape.embedding_norm:
            _put_norm(stack.layernorm_embedding, embedding.norm)
        described = stack.embeddings[0] if name == "encoder" else stack.embeddings
        _put(described, embedding.vectors(torch.arange(len(embedding.subwords.weight))))
        for described, layer in zip(stack.layer, layers_of(getattr(model, name)), strict=True):
            _put_layer(described, layer, most[name], shape)
        if shape.pre_norm:
            _put_norm(stack.layer_norm, getattr(model, f"{name}_norm"))
    _put(spec.decoder.projection, model.projection.weight, model.projection.bias)
    return spec


def _put_layer(spec: Any, layer: Layer, heads: int, shape: ModelShape) -> None:
    for part in layer.parts:
        described = getattr(spec, PARTS[part.kind])
        _put_norm(described.layer_norm, part.residual.norm)
        if isinstance(part, FeedForwardPart):
            inner, outer = part.feedforward.inner, part.feedforward.outer
            # It has no matrices without rows, so a network without units gets one that is always zero.
            more = 0 if outer.in_features else 1
            for name, linear in (("linear_0", inner), ("linear_0_noact", part.feedforward.factor)):
                if linear is not None:
                    bias = None if linear.bias is None else F.pad(linear.bias, (0, more))
                    _put(getattr(described, name), F.pad(linear.weight, (0, 0, 0, more)), bias)
            _put(described.linear_1, F.pad(outer.weight, (0, more)), outer.bias)
        elif isinstance(part, SelfAttention | CrossAttention):
            _put_attention(described, part.attention, heads, shape)
            if isinstance(part, SelfAttention) and part.distances is not None:
                table = part.distances.weight[:, list(part.columns)]
                described.relative_attention_bias = _numbers(_padded(table, len(table), heads))
                described.relative_attention_max_distance = np.int32(shape.farthest_distance)


def _put_attention(spec: Any, ours: Attention, heads: int, shape: ModelShape) -> None:
    """Fill in the matrices, with zeros for missing heads, joined as in CTranslate2: all three, or keys and values."""
    rows = heads * shape.head_width
    if not shape.scaled_products:
        spec.queries_scale = np.float32(1.0)
    maps = [ours.query, ours.key, ours.value]
    for linear, parts in zip(spec.linear, [maps] if len(spec.linear) == 2 else [maps[:1], maps[1:]], strict=False):
        biases = [_padded(part.bias, rows) for part in parts if part.bias is not None]
        weights = torch.cat([_padded(part.weight, rows, shape.width) for part in parts])
        _put(linear, weights, torch.cat(biases) if biases else None)
    _put(spec.linear[-1], _padded(ours.output.weight, shape.width, rows), ours.output.bias)


def _padded(part: Tensor, *sizes: int) -> Tensor:
    """A matrix or vector padded to `sizes` with zeros at the end."""
    whole = part.new_zeros(sizes)
    whole[tuple(slice(size) for size in part.shape)] = part.detach()
    return whole


def _put(spec: Any, weight: Tensor, bias: Tensor | None = None) -> None:
    spec.weight = _numbers(weight)
    if bias is not None:
        spec.bias = _numbers(bias)


def _put_norm(spec: Any, norm: nn.Module) -> None:
    for name, parameter in norm.named_parameters():
        setattr(spec, NORMS[name], _numbers(parameter))


def _numbers(tensor: Tensor) -> Any:
    return tensor.detach().float().cpu().numpy().copy()


def aligning_heads(rows: Path, shape: ModelShape) -> list[AligningHead]:
    """Alignment heads in a table of `heads alignment_heads`, lowest AER first; if none aligns, the best head alone.

    Raises UserError if the file is not such a table, or is of another model.
    """
    try:
        found = [
            (float(row["aer"]), (int(row["layer"]), int(row["head"])), row["aligns"] == "1")
            for row in read_tsv(rows)
            if row["step"] == STEP
        ]
    except (LookupError, ValueError) as error:
        raise UserError(
            f"{rows} is not a table of alignment heads ({error!r}): give one that heads alignment_heads wrote."
        ) from None
    live = {(layer, head) for _, layer, head in shape.heads(("dec_enc",))}
    if {head for _, head, _ in found} != live:
        raise UserError(
            f"{rows} does not list exactly the live cross-attention heads of this model for step {STEP}: measure them "
            "with python -m heads alignment_heads."
        )
    return [head for _, head, aligns in sorted(found) if aligns] or [min(found)[1]]


def aligning_first(model: Transformer, heads: Sequence[AligningHead]) -> tuple[Transformer, list[list[int]]]:
    """An equivalent model whose alignment heads come first in the best head's layer, and the new places of `heads`.

    The best head is the first of `heads`. A place is a layer and a position among its live heads.
    """
    live = model.shape.live_heads["dec_enc"]
    if not heads:
        return model, []
    order, best = {layer: list(numbers) for layer, numbers in enumerate(live)}, heads[0][0]
    front = [head for layer, head in heads if layer == best]
    order[best] = front + [head for head in live[best] if head not in front]
    moved, width = copy.deepcopy(model), model.shape.head_width
    attention = layers_of(moved.decoder)[best].cross_attention
    rows = torch.cat([torch.arange(width) + width * live[best].index(head) for head in order[best]])
    for linear in (attention.query, attention.key, attention.value):
        for parameter in linear.parameters():
            parameter.data = parameter.data[rows]
    attention.output.weight.data = attention.output.weight.data[:, rows]
    return moved, [[layer, order[layer].index(head)] for layer, head in heads]


def _write(what: Translation, folder: Path) -> float:
    write_ctranslate2(what.model, what.vocabularies, folder, what.quantization, what.aligning)
    return agreement_of_ctranslate2(what.model, what.vocabularies, folder, what.pairs)


def _translating(what: Translation, batches: Sequence[TimedBatch], folder: Path) -> Callable[[], None]:
    import ctranslate2

    write_ctranslate2(what.model, what.vocabularies, folder, what.quantization)
    translator = ctranslate2.Translator(str(folder), compute_type="default", inter_threads=1, intra_threads=1)
    source, ends = what.vocabularies[0], [vocabulary.subword(EOS) for vocabulary in what.vocabularies]
    # It adds EOS to a source itself, unless source and target have different ones.
    cut = 0 if ends[0] != ends[1] else 1
    named = [
        [[source.subword(int(i)) for i in ids[real][: int(real.sum()) - cut]] for ids, real in rows]
        for rows in (zip(batch.source.cpu(), batch.mask.cpu(), strict=True) for batch in batches)
    ]

    def translate() -> None:
        for sources, batch in zip(named, batches, strict=True):
            length = max(1, batch.subwords)
            translator.translate_batch(sources, beam_size=1, min_decoding_length=length, max_decoding_length=length)

    return translate


CTRANSLATE2 = ExportFormat(
    _write,
    lambda shape, *_: refuse_for_ctranslate2(shape),
    one_number=tuple(STACKS.values()),
    engine=Engine("CTranslate2", _translating),
)

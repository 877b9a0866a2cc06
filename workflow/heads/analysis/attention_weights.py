"""Attention weights of live heads, taken from a model into arrays in the order of `ModelShape.heads`."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heads.analysis.attention_maps import Classified, Translated
from heads.config.analyses import TranslateSettings
from heads.model.attention import Trace, attention_weights, with_mask
from heads.model.distances import all_distances
from heads.model.encoder import Encoder
from heads.model.shape import ModelShape
from heads.model.sublayers import SelfAttention, name_of, parts_of
from heads.model.transformer import Transformer
from heads.syntax.words import SentenceAttention, Words
from heads.text.batches import batched, make_batch, pad
from heads.text.special_ids import BOS, EOS
from heads.translation.beam_search import beam_search


def live_weights(trace: Trace, shape: ModelShape, attention: str) -> Tensor | None:
    """Weights [B, N, Q, K] of all N live heads of one kind, in the order of `ModelShape.heads`; None without any."""
    live = enumerate(shape.live_heads[attention])
    layers = [trace[f"{attention}.{layer}.weights"] for layer, heads in live if heads]
    return torch.cat(layers, 1) if layers else None


def by_length(sentences: Sequence[Words], batch_tokens: int) -> Iterator[list[int]]:
    """Numbers of sentences of similar length, in batches of about `batch_tokens` subwords."""
    lengths = np.array([len(sentence.subwords) for sentence in sentences], np.int64)
    return (members.tolist() for members in batched(np.argsort(lengths, kind="stable"), lengths, batch_tokens))


def halves_of(model: Encoder, trace: Trace, real: Tensor) -> list[Tensor]:
    """Weights [B, N, P, P] of all live encoder heads by their biases of distances alone, and by their products alone.

    Each is the softmax of one of the two summands that a head's weights are the softmax of, in the states of the whole
    model. trace: of an encoding of sentences with mask `real` [B, P].
    """
    by_bias, by_products = [], []
    for part in parts_of(model.encoder):
        if isinstance(part, SelfAttention) and part.attention.heads:
            attention, mask = part.attention, real[:, None, None]
            bias = part.bias(all_distances(real.shape[1], real.device)[None])
            by_bias.append(with_mask(bias, mask).softmax(-1))
            entered = part.residual.enter(trace[f"{name_of(part)}.input"])
            queries, keys = attention.together(entered, None, attention.query, attention.key)
            by_products.append(attention_weights(queries, keys, mask=mask, causal=False, scale=attention.scale))
    return [torch.cat(by_bias, 1), torch.cat(by_products, 1)]


@torch.inference_mode()
def attend(
    model: Encoder, sentences: Sequence[Words], batch_tokens: int, *, apart: bool = False
) -> Iterator[SentenceAttention]:
    """Each sentence with its encoder self-attention [N, P, P], heads in the order of `ModelShape.heads`.

    The model, in evaluation mode, reads the sentence followed by EOS; an encoder alone reads BOS before it and no
    second sentence. Rows and columns of these special tokens are dropped, and weights are not renormalised. Sentences
    come by length, in batches of about `batch_tokens` subwords. A model without live heads in its encoder yields
    nothing. apart: whether weights by biases of distances alone, then those by products alone follow, [3N, P, P].
    """
    device = next(model.parameters()).device
    start = [BOS] if model.shape.encoder_only else []
    for members in by_length(sentences, batch_tokens):
        padded = pad([np.array([*start, *sentences[i].subwords, EOS], np.int32) for i in members])
        source, mask = (tensor.to(device) for tensor in padded)
        trace: Trace = {}
        model.encode(source, mask, trace=trace)
        weights = live_weights(trace, model.shape, "enc_self")
        if weights is None:
            return
        if apart:
            weights = torch.cat([weights, *halves_of(model, trace, mask)], 1)
        for row, member in zip(weights.float().cpu().numpy(), members, strict=True):
            real = slice(len(start), len(start) + len(sentences[member].subwords))
            yield sentences[member], row[:, real, real]


@torch.inference_mode()
def attend_to_source(
    model: Transformer, pairs: Sequence[tuple[Words, Words]], batch_tokens: int
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """The number of each pair with its cross-attention [N, T+1, S], while the decoder reads the reference.

    T target and S source subwords. Row t is the step that reads subword t-1 (at first BOS) and outputs subword t (at
    last EOS). The source's EOS is read, but its column is dropped, and weights are not renormalised. Heads are in the
    order of `ModelShape.heads`; a model without any yields nothing. Pairs come by length.
    """
    device = next(model.parameters()).device
    for members in by_length([source for source, _ in pairs], batch_tokens):
        batch = make_batch(*([pairs[i][side].subwords for i in members] for side in (0, 1))).to(device)
        trace: Trace = {}
        model(batch.source, batch.source_mask, batch.target_input, trace=trace)
        weights = live_weights(trace, model.shape, "dec_enc")
        if weights is None:
            return
        for row, member in zip(weights.float().cpu().numpy(), members, strict=True):
            source, target = pairs[member]
            yield member, row[:, : len(target.subwords) + 1, : len(source.subwords)]


@torch.inference_mode()
def attend_translating(
    model: Transformer, sentences: Sequence[Words], settings: TranslateSettings
) -> Iterator[Translated]:
    """Each sentence with its translation by the search in the settings, and all attention weights for the two.

    The model is in evaluation mode. Sentences come by length, in batches.
    """
    device = next(model.parameters()).device
    for members in by_length(sentences, settings.batch_tokens):
        subwords = [sentences[i].subwords for i in members]
        source, mask = (tensor.to(device) for tensor in pad([np.append(ids, EOS) for ids in subwords]))
        written = beam_search(model, source, mask, beam=settings.beam, length_penalty=settings.length_penalty)
        batch = make_batch(subwords, [np.array(ids, np.int32) for ids in written]).to(device)
        trace: Trace = {}
        model(batch.source, batch.source_mask, batch.target_input, trace=trace)
        found = {kind: live_weights(trace, model.shape, kind) for kind in model.shape.kinds}
        arrays = {kind: None if one is None else one.float().cpu().numpy() for kind, one in found.items()}
        for row, (member, target) in enumerate(zip(members, written, strict=True)):
            read, wrote = len(subwords[row]) + 1, len(target) + 1
            sizes = {"enc_self": (read, read), "dec_self": (wrote, wrote), "dec_enc": (wrote, read)}
            weights = {
                kind: np.zeros((0, queries, keys), np.float32) if array is None else array[row, :, :queries, :keys]
                for kind, array in arrays.items()
                for queries, keys in [sizes[kind]]
            }
            yield Translated(sentences[member], target, weights)


@torch.inference_mode()
def attend_classifying(model: Encoder, examples: Sequence[Words], batch_tokens: int) -> Iterator[Classified]:
    """Each example, special tokens included, with its predicted label and its attention weights.

    The model is in evaluation mode. Examples come by length, in batches of about `batch_tokens` subwords.
    """
    device = next(model.parameters()).device
    for members in by_length(examples, batch_tokens):
        source, mask = (tensor.to(device) for tensor in pad([examples[i].subwords for i in members]))
        trace: Trace = {}
        answers = model.projection(model(source, mask, None, None, trace))[:, 0]
        # A vector is not a choice between labels: the first label stands for every vector.
        labels = [0] * len(members) if model.shape.embeds else answers.argmax(-1).tolist()
        found = live_weights(trace, model.shape, "enc_self")
        none = np.zeros((len(members), 0, *source.shape[1:] * 2), np.float32)
        weights = none if found is None else found.float().cpu().numpy()
        for row, member in enumerate(members):
            read = len(examples[member].subwords)
            yield Classified(examples[member], labels[row], weights[row, :, :read, :read])

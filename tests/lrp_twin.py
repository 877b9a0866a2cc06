"""A second, plain implementation of the LRP of `heads.lrp`, to hold it against: one sentence and one step at a time.

It follows the formulas of Voita et al. 2019, App. A.2, with neuron relevances and all their divisions written out, on
a forward pass of its own. Only the weights are taken from the model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from heads.attention import Attention
from heads.transformer import FeedForward, Layer, Residual, Transformer, sinusoids

STABILISER = 1e-12


def ratio(relevance: Tensor, total: Tensor) -> Tensor:
    """Relevance per unit of contribution."""
    return relevance / (total + STABILISER * (1.0 - 2.0 * (total < 0)))


def through_matrix(inputs: Tensor, weight: Tensor, relevance: Tensor) -> Tensor:
    """App. A.2 for a linear map with `weight` [outputs, inputs], without its bias."""
    return inputs * (ratio(relevance, inputs @ weight.T) @ weight)


def through_norm(norm: nn.Module, inputs: Tensor, relevance: Tensor) -> Tensor:
    """The same for a layer norm [Q, D], with the matrix (identity - 1/D) * gain / standard deviation."""
    if not isinstance(norm, nn.LayerNorm):
        return relevance
    slope = norm.weight / (inputs.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()
    spread = slope * ratio(relevance, (inputs - inputs.mean(-1, keepdim=True)) * slope)
    return inputs * (spread - spread.mean(-1, keepdim=True))


@dataclass
class Sum:
    """A residual sum: what came in, what a sub-layer made of `attended` and added."""

    name: str
    residual: Residual
    part: Attention | FeedForward
    stream: Tensor
    entered: Tensor
    attended: Tensor
    change: Tensor
    weights: Tensor | None = None
    """[H, Q, K]"""


class Twin:
    """One sentence pair in a model, all at hand for walks from its generation steps."""

    def __init__(self, model: Transformer, source: Tensor, target: Tensor) -> None:
        """source: [S] ids. target: [T] ids of the decoder's input."""
        self.model = model
        self.sums: dict[str, list[Sum]] = {"encoder": [], "decoder": []}
        states = embedded(model.source_embedding.pieces, source)
        for layer in cast(list[Layer], model.encoder):
            states = self.attend("encoder", f"enc_self.{layer.index}", states, layer)
            states = self.transform("encoder", f"enc_ffn.{layer.index}", states, layer)
        self.encoder_top, self.memory = states, model.encoder_norm(states)
        states = embedded(model.target_embedding.pieces, target)
        for layer in cast(list[Layer], model.decoder):
            states = self.attend("decoder", f"dec_self.{layer.index}", states, layer)
            states = self.attend("decoder", f"dec_enc.{layer.index}", states, layer)
            states = self.transform("decoder", f"dec_ffn.{layer.index}", states, layer)
        self.decoder_top, self.output = states, model.decoder_norm(states)
        self.logits = self.output @ model.projection.weight.T + model.projection.bias

    def attend(self, side: str, name: str, stream: Tensor, layer: Layer) -> Tensor:
        """An attention sub-layer forward."""
        cross = name.startswith("dec_enc")
        part = layer.cross_attention if cross else layer.self_attention
        residual = layer.cross_residual if cross else layer.self_residual
        entered = residual.norm(stream) if residual.pre_norm else stream
        attended = self.memory if cross else entered
        weights, per_head = [], [torch.zeros(len(stream), 0).to(stream)]
        for head in range(part.heads):
            rows = slice(head * part.head_width, (head + 1) * part.head_width)
            query, key, value = (m.weight[rows] for m in (part.query, part.key, part.value))
            scores = (entered @ query.T) @ (attended @ key.T).T / math.sqrt(part.head_width)
            if name.startswith("dec_self"):
                scores = scores + torch.full_like(scores, -torch.inf).triu(1)
            weights.append(scores.softmax(-1))
            per_head.append(weights[-1] @ (attended @ value.T))
        change = torch.cat(per_head, -1) @ part.output.weight.T
        stacked = torch.stack(weights) if weights else None
        self.sums[side].append(Sum(name, residual, part, stream, entered, attended, change, stacked))
        return residual.leave(stream, change)

    def transform(self, side: str, name: str, stream: Tensor, layer: Layer) -> Tensor:
        """A feed-forward sub-layer forward."""
        part, residual = layer.feedforward, layer.feedforward_residual
        entered = residual.norm(stream) if residual.pre_norm else stream
        change = part.outer(part.inner(entered).relu())
        self.sums[side].append(Sum(name, residual, part, stream, entered, entered, change))
        return residual.leave(stream, change)

    def walk(self, step: int) -> tuple[dict[str, Tensor], float]:
        """From one step's top-1 logit: relevance [H] met at each attention's heads, and the total at the embeddings."""
        met: dict[str, Tensor] = {}
        best = int(self.logits[step].argmax())
        relevance = torch.zeros_like(self.output)
        weight = self.model.projection.weight[best : best + 1]
        relevance[step] = through_matrix(self.output[step], weight, self.logits[step, best : best + 1])
        relevance = through_norm(self.model.decoder_norm, self.decoder_top, relevance)
        at_memory = torch.zeros_like(self.memory)
        for taken in reversed(self.sums["decoder"]):
            relevance, beyond = self.through_sum(taken, relevance, met)
            at_memory = at_memory + beyond if taken.name.startswith("dec_enc") else at_memory
        prefix = relevance.sum()
        relevance = through_norm(self.model.encoder_norm, self.encoder_top, at_memory)
        for taken in reversed(self.sums["encoder"]):
            relevance, _ = self.through_sum(taken, relevance, met)
        return met, float(relevance.sum() + prefix)

    def through_sum(self, taken: Sum, relevance: Tensor, met: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Back through a residual sum: relevance of the stream, and (cross-attention only) of the memory."""
        summed = taken.stream + taken.change
        if not taken.residual.pre_norm:
            relevance = through_norm(taken.residual.norm, summed, relevance)
        stream, change = taken.stream * ratio(relevance, summed), taken.change * ratio(relevance, summed)
        if isinstance(taken.part, FeedForward):
            inside = through_feedforward(taken.part, taken.entered, change)
        else:
            inside, met[taken.name] = through_attention(taken, change)
        if taken.name.startswith("dec_enc"):
            return stream, inside
        if taken.residual.pre_norm:
            inside = through_norm(taken.residual.norm, taken.stream, inside)
        return stream + inside, torch.zeros(())


def embedded(pieces: nn.Embedding, ids: Tensor) -> Tensor:
    """Scaled embeddings with positions [Q, D] of ids [Q]."""
    width = pieces.weight.shape[1]
    return pieces.weight[ids] * math.sqrt(width) + sinusoids(len(ids), width).to(pieces.weight)


def through_feedforward(part: FeedForward, inputs: Tensor, relevance: Tensor) -> Tensor:
    """Back through two linear maps; the ReLU between them changes nothing."""
    hidden = part.inner(inputs).relu()
    return through_matrix(inputs, part.inner.weight, through_matrix(hidden, part.outer.weight, relevance))


def through_attention(taken: Sum, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Back through an attention, head by head: relevance of the attended states [K, D], and what each head met [H]."""
    part, attended = taken.part, taken.attended
    assert isinstance(part, Attention)
    below, met = torch.zeros_like(attended), []
    if taken.weights is None:
        return below, torch.zeros(0)
    values = [attended @ weight.T for weight in part.value.weight.split(part.head_width)]
    outputs = [weights @ value for weights, value in zip(taken.weights, values, strict=True)]
    at_heads = through_matrix(torch.cat(outputs, -1), part.output.weight, relevance)
    at_values = []
    for weights, value, output, at_head in zip(
        taken.weights, values, outputs, at_heads.split(part.head_width, -1), strict=True
    ):
        met.append(at_head.sum())
        at_values.append(value * (weights.T @ ratio(at_head, output)))
    below = through_matrix(attended, part.value.weight, torch.cat(at_values, -1))
    return below, torch.stack(met)

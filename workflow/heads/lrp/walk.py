"""Relevance from the logits through the decoder and the encoder down to the embeddings, read off at the heads.

What arrives at a head's output, before the output projection, is summed over its neurons and over positions. The walk
is linear in the relevance that sets out, so all generation steps of a batch go at once, along a dimension of their own;
a position hears only of steps from its own on. See `heads.lrp.rules` for what a multiplier is.

Letters of shapes: B batch, G generation step, Q/K query and key position, S source length, D width, H heads of a layer,
E width of one head, N real generation steps of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from heads.attention import Trace
from heads.batches import Batch
from heads.lrp.rules import Back, PlainRatio, scaled, stabilised, unchanged
from heads.names import ATTENTIONS
from heads.settings import LrpSettings
from heads.transformer import Layer, Residual, Transformer

CHUNK_ELEMENTS = {"cpu": 2**18, "cuda": 2**25}
"""How many numbers the widest tensor of a walk may have: what a cache holds, or a fraction of a GPU's memory."""

SMALLEST_LOGIT = 1e-9
"""Guards the relative deviation against a logit of zero."""


@dataclass(frozen=True, slots=True)
class AttentionBack:
    """The way back through an attention, from its output past its heads to the states that it attended to."""

    rule: PlainRatio
    weights: Tensor
    """[B, H, Q, K]"""
    outputs: Tensor
    """[B, Q, H, E], of each head."""
    project: Back
    value: Back
    own: bool
    """Whether the attended states are the queries' own, which all stop at the same position."""

    def __call__(self, multiplier: Tensor) -> tuple[Tensor, Tensor]:
        """From multipliers [B, G, Q, D] to those of the attended states, and relevance [B, G, H] met at the heads."""
        sentences, queries = len(multiplier), multiplier.shape[2]
        at_heads = self.project(multiplier).unflatten(-1, self.outputs.shape[2:])
        met = torch.einsum("bqhe,bgqhe->bgh", self.outputs[:sentences, :queries], at_heads)
        weights = self.weights[:sentences, :, :queries, : queries if self.own else None]
        return self.value(self.rule.attention(weights, at_heads).flatten(-2)), met


Inside = Callable[[Tensor], tuple[Tensor, Tensor | None]]
"""As `AttentionBack`, or without heads to meet."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Where the relevance at the end of a sub-layer went."""

    states: Tensor
    """Multipliers [B, G, Q, D] of what came in."""
    memory: Tensor | None = None
    """Multipliers [B, G, S, D] of the encoder's output; None where it is not attended to."""
    met: Tensor | None = None
    """[B, G, H], relevance met at the heads; None where there are none."""
    ended: Tensor | None = None
    """[B, G, Q], relevance that ended, where a bias alone was added to the stream; None for nowhere."""


@dataclass(frozen=True, slots=True)
class SubLayer:
    """The way back through a sub-layer and the residual sum around it."""

    name: str
    states: Tensor
    """[B, Q, D], what came in."""
    leave: Back
    """From what came out to the two summands."""
    inside: Inside | None
    """From the sub-layer's summand to what the sub-layer was given; None for an attention without heads."""
    enter: Back
    """From what the sub-layer was given to what came in."""
    constant: Tensor | None = None
    """[B, Q, D], what is added where no input takes part, so that relevance ends there; None for nowhere."""

    def back(self, multiplier: Tensor) -> Arrived:
        """From multipliers [B, G, Q, D] of what came out."""
        multiplier = self.leave(multiplier)
        if self.inside is None:
            return Arrived(multiplier)
        given, met = self.inside(multiplier)
        if self.name.startswith("dec_enc"):
            return Arrived(multiplier, given, met)
        ended = None if self.constant is None else scaled(multiplier, self.constant).sum(-1)
        return Arrived(multiplier + self.enter(given), met=met, ended=ended)


def around(
    rule: PlainRatio,
    name: str,
    trace: Trace,
    residual: Residual,
    change: Tensor | None,
    inside: Inside | None,
    constant: Tensor | None = None,
) -> SubLayer:
    """The sub-layer that added `change` (None: nothing) to what came in, pre-norm or post-norm."""
    states = trace[f"{name}.input"]
    norm = rule.norm(residual.norm, states if residual.pre_norm or change is None else states + change)
    leave, enter = (unchanged, norm) if residual.pre_norm else (norm, unchanged)
    return SubLayer(name, states, leave, inside, enter, constant)


def attention(rule: PlainRatio, layer: Layer, kind: str, trace: Trace, memory: Tensor | None = None) -> SubLayer:
    """An attention of a layer; `memory` [B, S, D] is the encoder's output, if it attends to that."""
    name = f"{kind}.{layer.index}"
    own = memory is None
    module, residual = (
        (layer.self_attention, layer.self_residual) if own else (layer.cross_attention, layer.cross_residual)
    )
    if module.heads == 0:
        return around(rule, name, trace, residual, None, None)
    outputs = trace[f"{name}.heads"].transpose(1, 2)
    change, project = rule.linear(module.output, outputs.flatten(2))
    _, value = rule.linear(module.value, residual.enter(trace[f"{name}.input"]) if memory is None else memory)
    inside = AttentionBack(rule, trace[f"{name}.weights"], outputs, project, value, own)
    return around(rule, name, trace, residual, change, inside)


def feedforward(rule: PlainRatio, layer: Layer, trace: Trace) -> SubLayer:
    """The feed-forward part of a layer."""
    name = f"{layer.self_kind[:3]}_ffn.{layer.index}"
    part, residual = layer.feedforward, layer.feedforward_residual
    entered = residual.enter(trace[f"{name}.input"])
    hidden, inner = rule.relu_of_linear(part.inner, entered)
    change, outer = rule.linear(part.outer, hidden)
    closed = (hidden == 0).all(-1, keepdim=True)
    constant = change * closed if closed.any() else None
    return around(rule, name, trace, residual, change, lambda m: (inner(outer(m)), None), constant)


def relevance(states: Tensor, multiplier: Tensor) -> Tensor:
    """Total relevance [B, G] of the first part of `states`, which has multipliers [B, G, Q, D]."""
    return torch.einsum("bqd,bgqd->bg", states[: len(multiplier), : multiplier.shape[2]], multiplier)


class Walk:
    """One walk of some generation steps, with its account of the relevance under way."""

    def __init__(self, start: Tensor, ended: Tensor, memory: Tensor) -> None:
        """start: [B, G], the relevance that sets out. ended: of it, what has ended at biases. memory: [B, S, D]."""
        self.start, self.ended, self.memory = start, ended, memory
        self.at_memory = memory.new_zeros(*start.shape, *memory.shape[1:])
        self.met: dict[str, Tensor] = {}
        self.deviation = torch.zeros_like(start)

    def down(self, sublayers: Sequence[SubLayer], multiplier: Tensor) -> None:
        """From the top of a stack to its bottom; what decoder layers give to the memory is gathered in `at_memory`."""
        gathered = here = torch.zeros_like(self.start)
        for part in reversed(sublayers):
            arrived = part.back(multiplier)
            multiplier = arrived.states
            if arrived.met is not None:
                self.met[part.name] = arrived.met
            if arrived.memory is not None:
                self.at_memory = self.at_memory + arrived.memory
                gathered = relevance(self.memory, self.at_memory)
            if arrived.ended is not None:
                self.ended = self.ended + arrived.ended.sum(-1)
            here = relevance(part.states, multiplier)
            lost = (here + gathered + self.ended - self.start) / stabilised(self.start, SMALLEST_LOGIT)
            self.deviation = torch.maximum(self.deviation, lost.abs())
        self.ended = self.ended + here


class Ways:
    """The ways back through a whole model, as it was traced on one batch."""

    def __init__(self, model: Transformer, batch: Batch, rule: PlainRatio) -> None:
        trace: Trace = {}
        states = model(batch.source, batch.source_mask, batch.target_input, trace=trace)
        self.memory = model.encoder_norm(trace["encoder_norm.input"])
        self.encoder_norm = rule.norm(model.encoder_norm, trace["encoder_norm.input"])
        self.encoder: list[SubLayer] = []
        for layer in cast(Iterable[Layer], model.encoder):
            self.encoder += [attention(rule, layer, "enc_self", trace), feedforward(rule, layer, trace)]
        self.decoder: list[SubLayer] = []
        for layer in cast(Iterable[Layer], model.decoder):
            self.decoder.append(attention(rule, layer, "dec_self", trace))
            self.decoder.append(attention(rule, layer, "dec_enc", trace, self.memory))
            self.decoder.append(feedforward(rule, layer, trace))

        self.logits, top = model.projection(states).max(-1)
        scale = self.logits / stabilised(self.logits - model.projection.bias[top], rule.stabiliser)
        multiplier = model.projection.weight[top] * scale[:, :, None]
        multiplier = rule.norm(model.decoder_norm, trace["decoder_norm.input"])(multiplier[:, None])
        # Until the first attention a position belongs to its own step alone: one step's room holds all of them.
        arrived = self.decoder.pop().back(multiplier)
        self.below_top = arrived.states[:, 0]
        self.ended_at_top = torch.zeros_like(self.logits) if arrived.ended is None else arrived.ended[:, 0]

    def walk(self, sentences: int, first: int, last: int) -> Walk:
        """Walk the generation steps `first` to `last` of the first `sentences` sentences."""
        part = (slice(sentences), slice(first, last))
        walk = Walk(self.logits[part], self.ended_at_top[part], self.memory[:sentences])
        steps = torch.arange(first, last, device=self.memory.device)
        multiplier = self.memory.new_zeros(sentences, last - first, last, self.memory.shape[2])
        multiplier[:, steps - first, steps] = self.below_top[part]
        walk.down(self.decoder, multiplier)
        walk.down(self.encoder, self.encoder_norm(walk.at_memory))
        return walk


@dataclass(frozen=True, slots=True)
class HeadRelevance:
    """What arrived at the heads in every generation step of a batch: sentence after sentence, padding left out."""

    heads: dict[str, list[Tensor]]
    """By kind of attention, for each layer [N, H] in the order of its live heads."""
    logits: Tensor
    """[N], the top-1 logits that set out as relevance."""
    deviation: Tensor
    """[N], largest distance of the account after any sub-layer from the logit, as a share of the logit."""


@torch.no_grad()
def head_relevance(
    model: Transformer, batch: Batch, settings: LrpSettings, chunk_elements: int | None = None
) -> HeadRelevance:
    """Relevance of the top-1 logit of every generation step of `batch`, given its target prefix, at every head.

    model: in evaluation mode and float64. chunk_elements: bound on the widest tensor; it changes no result.
    """
    # Longest first, so that the sentences that still have steps are always the first ones.
    order = batch.target_mask.sum(1).argsort(descending=True, stable=True)
    batch = Batch(*(getattr(batch, name)[order] for name in Batch.__slots__))
    ways, mask = Ways(model, batch, PlainRatio(settings.stabiliser)), batch.target_mask
    live = model.shape.live_heads
    heads = {kind: [ways.logits.new_zeros(*mask.shape, len(layer)) for layer in live[kind]] for kind in ATTENTIONS}
    deviation = torch.zeros_like(ways.logits)
    for first, last in chunks(model, batch, chunk_elements or CHUNK_ELEMENTS[mask.device.type]):
        sentences = int(mask[:, first].sum())
        walk = ways.walk(sentences, first, last)
        deviation[:sentences, first:last] = walk.deviation
        for name, met in walk.met.items():
            kind, layer = name.split(".")
            heads[kind][int(layer)][:sentences, first:last] = met

    back = order.argsort()
    mask = mask[back]

    def in_order(steps: Tensor) -> Tensor:
        return steps[back][mask]

    return HeadRelevance(
        {kind: [in_order(layer) for layer in layers] for kind, layers in heads.items()},
        in_order(ways.logits),
        in_order(deviation),
    )


def chunks(model: Transformer, batch: Batch, elements: int) -> list[tuple[int, int]]:
    """Cut the generation steps of a batch into runs [first, last) that need tensors of at most about `elements`."""
    steps = batch.target_input.shape[1]
    width = max(model.shape.width, model.shape.feedforward)
    at_once = max(1, elements // (len(batch.source) * max(batch.source.shape[1], steps) * width))
    return [(first, min(steps, first + at_once)) for first in range(0, steps, at_once)]

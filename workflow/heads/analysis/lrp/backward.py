"""Relevance from the logits through decoder and encoder down to the embeddings, recorded at the heads.

Relevance at a head's output, before the output projection, is summed over its neurons and over positions. The backward
pass is linear in the initial relevance, so generation steps go together, along an axis of their own; a position
receives relevance only from its own and later steps. Where this module says multiplier, a rule that carries relevance
itself has relevance instead. Shape letters as in `heads.analysis.lrp.rules`; S source length.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from heads.analysis.lrp.rules import Account, Attended, Back, Rule, first, unchanged
from heads.analysis.lrp.units import through_units
from heads.model.attention import Attention, Trace, joined
from heads.model.encoder import Encoder
from heads.model.encoder_only import Classifier
from heads.model.sublayers import (
    CrossAttention,
    FeedForwardPart,
    Recurrence,
    Residual,
    SelfAttention,
    SubLayer,
    name_of,
    parts_of,
)
from heads.model.transformer import Transformer
from heads.text.batches import Batch


@dataclass(frozen=True, slots=True)
class Propagated:
    """What a sub-layer's output propagated to its inputs, as multipliers; None for nothing."""

    states: Tensor | None = None
    """[B, G, Q, D], of the sub-layer's input from its own stream."""
    memory: Tensor | None = None
    """[B, G, S, D], of the encoder's output."""
    heads: Tensor | None = None
    """[B, G, H], relevance at the heads."""


Inside = Callable[[Tensor, Account], Propagated]
"""From multipliers [B, G, Q, D] of a sub-layer's output to those of its inputs."""


class SubLayerBack(NamedTuple):
    """The way back through a sub-layer and the residual sum around it."""

    name: str
    states: Tensor
    """[B, Q, D], the relevance of one unit of the quantity carried, in the stream before the sub-layer."""
    back: Inside
    """From multipliers of the stream after the sub-layer to those of the stream before it."""


def through_norm(rule: Rule, norm: nn.Module, inputs: Tensor) -> Back:
    """The way back through a layer norm, or through the identity in its place."""
    if isinstance(norm, nn.RMSNorm):
        return rule.rms_norm(norm, inputs)
    return rule.norm(norm, inputs) if isinstance(norm, nn.LayerNorm) else unchanged


def with_residual(
    rule: Rule, name: str, states: Tensor, residual: Residual, change: Tensor | None, inside: Inside | None
) -> SubLayerBack:
    """The way back through a pre-norm or post-norm sub-layer that added `change` (None: nothing) to the stream."""
    norm = through_norm(rule, residual.norm, states if residual.pre_norm or change is None else states + change)
    leave, enter = (unchanged, norm) if residual.pre_norm else (norm, unchanged)
    fork = None if change is None else rule.add(states, change)

    def back(multiplier: Tensor, account: Account) -> Propagated:
        """Multipliers of the stream before, of the memory and at heads, from that of the stream after."""
        before, multiplier = multiplier, leave(multiplier, account)
        if fork is None or inside is None:
            return Propagated(multiplier)
        stream, part = fork(multiplier, account)
        propagated = inside(part, account)
        if propagated.states is not None:
            stream = stream + enter(propagated.states, account)
        if propagated.memory is None:
            return Propagated(stream, heads=propagated.heads)
        stream, memory = rule.rescaled(before, (stream, propagated.memory))
        return Propagated(stream, memory, propagated.heads)

    return SubLayerBack(name, rule.relevance_per_unit(states), back)


def through_sublayer(part: SubLayer, rule: Rule, trace: Trace, memory: Tensor | None) -> SubLayerBack:
    """The way back through a sub-layer; in a decoder, `memory` [B, S, D] is the encoder's output."""
    if isinstance(part, SelfAttention | CrossAttention):
        return attention(part, rule, trace, memory if isinstance(part, CrossAttention) else None)
    if isinstance(part, Recurrence):
        return recurrence(part, rule, trace)
    if isinstance(part, FeedForwardPart):
        return feedforward(part, rule, trace)
    raise TypeError(f"relevance rules do not support {type(part).__name__}")


def attention(part: SelfAttention | CrossAttention, rule: Rule, trace: Trace, memory: Tensor | None) -> SubLayerBack:
    """The way back through an attention; for cross-attention, `memory` [B, S, D] is the encoder's output."""
    name, module, residual = name_of(part), part.attention, part.residual
    states = trace[f"{name}.input"]
    if module.heads == 0:
        bias = None if module.output.bias is None else module.without_heads(states)
        return with_residual(
            rule, name, states, residual, bias, None if bias is None else ending(rule.relevance_per_unit(bias))
        )
    entered = residual.enter(states)
    attended = entered if memory is None else memory
    queries, keys = module.split(module.query(entered)), module.split(module.key(attended))
    # The traced values, not recomputed ones: the output at a position that sees only one value equals it to the last
    # bit, and a rounding difference would be mistaken for an effect of the weights.
    values, weights, outputs = (trace[f"{name}.{traced}"] for traced in ("values", "weights", "heads"))
    seen = Attended(queries, keys, values, weights, outputs, attended is entered, module.scale is None)
    merged = seen.outputs.transpose(1, 2).flatten(2)
    change = module.output(merged)
    project = rule.linear(module.output.weight, module.output.bias, merged, change)
    return with_residual(
        rule, name, states, residual, change, through_heads(rule, module, seen, project, entered, attended)
    )


def through_heads(
    rule: Rule, module: Attention, seen: Attended, project: Back, entered: Tensor, attended: Tensor
) -> Inside:
    """The way back from an attention's output, through `project` and its heads, to its input states."""
    own, softmax = seen.own, rule.through_softmax
    query, key, value = (module.query, seen.queries), (module.key, seen.keys), (module.value, seen.values)
    together = [*([query] if own and softmax else []), *([key] if softmax else []), value]
    at_attended = through_maps(rule, together, attended)
    at_entered = through_maps(rule, [query], entered) if softmax and not own else unchanged
    outputs, core = rule.relevance_per_unit(seen.outputs), rule.attention(seen)

    def inside(multiplier: Tensor, account: Account) -> Propagated:
        """Multipliers of the inputs and relevance at heads, from the multiplier of the output."""
        per_unit = outputs[: len(multiplier), :, : multiplier.shape[2]]
        at_heads = project(multiplier, account).unflatten(-1, (per_unit.shape[1], per_unit.shape[3]))
        of_heads = torch.einsum("bhqe,bgqhe->bgh", per_unit, at_heads)
        found = core(at_heads, account)
        parts = (found.queries if own else None, found.keys, found.values)
        states = at_attended(torch.cat([part.flatten(-2) for part in parts if part is not None], -1), account)
        if own:
            return Propagated(states, heads=of_heads)
        asked = None if found.queries is None else at_entered(found.queries.flatten(-2), account)
        return Propagated(asked, states, of_heads)

    return inside


def through_maps(rule: Rule, maps: Sequence[tuple[nn.Linear, Tensor]], inputs: Tensor) -> Back:
    """The way back through linear maps of the same `inputs`, with outputs [B, H, Q, E], as one map."""
    outputs = torch.cat([out.transpose(1, 2).flatten(2) for _, out in maps], -1)
    return rule.linear(*joined([part for part, _ in maps]), inputs, outputs)


def ending(per_unit: Tensor) -> Inside:
    """Inside an attention without heads: the account absorbs what its bias gets; per_unit: [B, Q, D]."""

    def inside(multiplier: Tensor, account: Account) -> Propagated:
        account.absorb((multiplier * first(per_unit, multiplier)).sum(-1))
        return Propagated()

    return inside


def recurrence(part: Recurrence, rule: Rule, trace: Trace) -> SubLayerBack:
    """The way back through a recurrent unit: with fixed gates, it weights candidates as attention weights values.

    No relevance goes into the gates (Arras et al. 2017, sec. 3.2).
    """
    name, unit, residual = name_of(part), part.ssru, part.residual
    states = trace[f"{name}.input"]
    entered = residual.enter(states)
    weights, candidates = unit.weights(entered)
    values = candidates.transpose(1, 2)[..., None]
    # Every neuron is a head of width one; there are no real queries.
    seen = Attended(values, values, values, weights, weights @ values, own=True)
    cells = seen.outputs[..., 0].transpose(1, 2)
    past_gates = rule.weighting(seen)
    candidate = rule.linear(unit.candidate.weight, unit.candidate.bias, entered, candidates)

    def inside(multiplier: Tensor, account: Account) -> Propagated:
        at_cells = multiplier * first(cells > 0, multiplier)
        found = past_gates(at_cells[..., None], account)
        return Propagated(candidate(found.values[..., 0], account))

    return with_residual(rule, name, states, residual, cells.relu(), inside)


def feedforward(part: FeedForwardPart, rule: Rule, trace: Trace) -> SubLayerBack:
    """The way back through the feed-forward part of a layer."""
    name, network, residual = name_of(part), part.feedforward, part.residual
    states = trace[f"{name}.input"]
    entered = residual.enter(states)
    hidden, units = through_units(rule, network, entered)
    change = network.outer(hidden)
    outer = rule.linear(network.outer.weight, network.outer.bias, hidden, change)

    def inside(multiplier: Tensor, account: Account) -> Propagated:
        return Propagated(units(outer(multiplier, account), account))

    return with_residual(rule, name, states, residual, change, inside)


def relevance(states: Tensor, multiplier: Tensor) -> Tensor:
    """Total relevance [B, G] of multipliers [B, G, Q, D], which cover the first part of `states`."""
    return torch.einsum("bqd,bgqd->bg", states[: len(multiplier), : multiplier.shape[2]], multiplier)


class BackwardPass:
    """One backward pass for some generation steps, with its account of the relevance under way."""

    def __init__(self, start: Tensor, absorbed: Tensor, memory: Tensor) -> None:
        """start: [B, G], initial relevance. absorbed: what ended of it. memory: [B, S, D], as in TracedModel."""
        self.start, self.memory, self.account = start, memory, Account(absorbed)
        self.at_memory = memory.new_zeros(*start.shape, *memory.shape[1:])
        self.arrived = torch.zeros_like(start)
        self.heads: dict[str, Tensor] = {}
        self.places: dict[str, Tensor] = {}
        """[B, G, 2] below each sub-layer: the relevance still under way and what was absorbed so far."""

    def down(self, sublayers: Sequence[SubLayerBack], multiplier: Tensor) -> None:
        """Propagate from the top of a stack to its bottom; what goes to the memory is added to `at_memory`."""
        gathered = here = torch.zeros_like(self.start)
        for part in reversed(sublayers):
            propagated = part.back(multiplier, self.account)
            multiplier = cast(Tensor, propagated.states)
            if propagated.heads is not None:
                self.heads[part.name] = propagated.heads
            if propagated.memory is not None:
                self.at_memory = self.at_memory + propagated.memory
                gathered = relevance(self.memory, self.at_memory)
            here = relevance(part.states, multiplier)
            under_way = here + gathered + self.arrived
            self.places[part.name] = torch.stack([under_way, self.account.absorbed], -1)
        self.arrived = self.arrived + here


class TracedModel:
    """A model as traced on one batch; `memory` is the relevance per unit of encoder states."""

    def __init__(self, model: Encoder, batch: Batch, rule: Rule) -> None:
        trace: Trace = {}
        states = model(batch.source, batch.source_mask, batch.target_input, trace=trace)
        memory = model.encoder_norm(trace["encoder_norm.input"])
        self.memory = rule.relevance_per_unit(memory)
        self.encoder_norm = through_norm(rule, model.encoder_norm, trace["encoder_norm.input"])
        self.encoder = [through_sublayer(part, rule, trace, None) for part in parts_of(model.encoder)]

        self.logits, top = model.projection(states).max(-1)
        self.start = rule.relevance_per_unit(self.logits)
        projection = model.projection
        multiplier, absorbed = rule.top(projection.weight[top], projection.bias[top], states, self.logits)
        # Before the first attention, a position belongs to its own step alone: one step's tensor holds all of them.
        account = Account(absorbed[:, None])
        self.decoder: list[SubLayerBack] = []
        if isinstance(model, Transformer):
            self.decoder = [through_sublayer(part, rule, trace, memory) for part in parts_of(model.decoder)]
            norm = through_norm(rule, model.decoder_norm, trace["decoder_norm.input"])
            multiplier = norm(multiplier[:, None], account)
            last = self.decoder.pop()
            below, per_unit, self.top = cast(Tensor, last.back(multiplier, account).states), last.states, last.name
        elif isinstance(model, Classifier):
            pooled = trace["pooler.input"]
            below = through_pooler(rule, model, pooled, multiplier, account)
            per_unit, self.top = rule.relevance_per_unit(pooled), "pooler"
        self.below_top, self.absorbed_at_top = below[:, 0], account.absorbed[:, 0]
        self.under_way = torch.einsum("bqd,bqd->bq", per_unit, self.below_top)

    def backward_pass(self, sentences: int, first: int, last: int) -> BackwardPass:
        """The backward pass of generation steps [first, last) of the first `sentences` sentences."""
        part = (slice(sentences), slice(first, last))
        backward = BackwardPass(self.start[part], self.absorbed_at_top[part], self.memory[:sentences])
        backward.places[self.top] = torch.stack([self.under_way[part], self.absorbed_at_top[part]], -1)
        if self.decoder:
            steps = torch.arange(first, last, device=self.memory.device)
            multiplier = self.memory.new_zeros(sentences, last - first, last, self.memory.shape[2])
            multiplier[:, steps - first, steps] = self.below_top[part]
            backward.down(self.decoder, multiplier)
        else:
            # The label of an example is predicted from its first state.
            backward.at_memory[:, :, 0] = self.below_top[part]
        backward.down(self.encoder, self.encoder_norm(backward.at_memory, backward.account))
        return backward


def through_pooler(rule: Rule, model: Classifier, first_states: Tensor, multiplier: Tensor, account: Account) -> Tensor:
    """Map multipliers [B, 1, D] of pooled states to those [B, 1, 1, D] of the first states [B, 1, D]."""
    sums = model.pooler(first_states)
    at_sums = rule.activation(sums, sums.tanh())(multiplier[:, None], account)
    return rule.linear(model.pooler.weight, model.pooler.bias, first_states, sums)(at_sums, account)

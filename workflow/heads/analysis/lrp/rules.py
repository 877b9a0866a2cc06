"""How one operation shares relevance out among its inputs: rules that share in the ratio of contributions.

The relevance R of a neuron of value x is carried as its multiplier R / x. Then a map without bias hands multipliers on
by its transposed weights alone, because the plain ratio's denominator is the neuron's own value; a residual sum gives
both its summands the multiplier of the sum; and a value of zero needs no care. Only the rules of `released` carry
relevance itself, since they give some to neurons of value zero; `Rule.worth` tells the walk which it is.

All rules but those leave three things alike: an activation passes relevance on unchanged, the standard deviation of a
layer norm is a constant, and what no input contributed to takes its relevance with it, for which the account answers.

Letters of shapes: B batch, G generation step, Q/K query and key position, D width of whatever is meant, H heads, E
width of one head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn


class Account:
    """Relevance that ended on the way down: at biases, and at neurons to which nothing contributed."""

    def __init__(self, absorbed: Tensor) -> None:
        """absorbed: [B, G] to begin with, or [B, G, Q] to keep positions apart."""
        self.absorbed = absorbed

    @property
    def apart(self) -> bool:
        """Whether every position is a step of its own, so that nothing may be summed over positions."""
        return self.absorbed.ndim == 3

    def absorb(self, amount: Tensor) -> None:
        """Take [B, G, Q] off the way."""
        self.absorbed = self.absorbed + (amount if self.apart else amount.sum(-1))


Back = Callable[[Tensor, Account], Tensor]
"""From multipliers [B, G, Q, D] of an operation's outputs to those of its inputs, for all that was traced or only for
the first sentences and positions of it."""

Fork = Callable[[Tensor, Account], tuple[Tensor, Tensor]]
"""The same for a sum, to both its summands."""


def unchanged(multiplier: Tensor, account: Account) -> Tensor:
    """The way back through nothing."""
    return multiplier


def first(part: Tensor, multiplier: Tensor) -> Tensor:
    """Of what holds for all steps, [B, Q, D], as much as belongs to multipliers [B, G, Q, D]; G is one."""
    return part[: len(multiplier), None, : multiplier.shape[2]]


def stabilised(denominator: Tensor, stabiliser: float) -> Tensor:
    """The denominator moved away from zero by `stabiliser` in the direction of its sign, upwards at zero."""
    return torch.where(denominator < 0, denominator - stabiliser, denominator + stabiliser)


@dataclass(frozen=True, slots=True)
class Attended:
    """One attention as it was traced."""

    queries: Tensor
    """[B, H, Q, E]"""
    keys: Tensor
    """[B, H, K, E]"""
    values: Tensor
    """[B, H, K, E]"""
    weights: Tensor
    """[B, H, Q, K]"""
    outputs: Tensor
    """[B, H, Q, E]"""
    own: bool
    """Whether a position attends to its like, so that what stops at a query stops at the same key."""

    def part(self, multiplier: Tensor) -> Attended:
        """As much of it as multipliers [B, G, Q, H, E] of head outputs belong to."""
        sentences, queries = len(multiplier), multiplier.shape[2]
        keys = queries if self.own else None
        return Attended(
            self.queries[:sentences, :, :queries],
            self.keys[:sentences, :, :keys],
            self.values[:sentences, :, :keys],
            self.weights[:sentences, :, :queries, :keys],
            self.outputs[:sentences, :, :queries],
            self.own,
        )

    @property
    def scale(self) -> float:
        """What scores are multiplied by."""
        return 1 / math.sqrt(self.queries.shape[-1])

    @property
    def scores(self) -> Tensor:
        """[B, H, Q, K], before the softmax; also where a mask lets none through."""
        return self.queries @ self.keys.transpose(-1, -2) * self.scale


@dataclass(frozen=True, slots=True)
class AtAttention:
    """Multipliers at what an attention was made of: [B, G, Q or K, H, E]; queries and keys only through the softmax."""

    values: Tensor
    keys: Tensor | None = None
    queries: Tensor | None = None


AttentionBack = Callable[[Tensor, Account], AtAttention]
"""From multipliers [B, G, Q, H, E] of head outputs to those of what was attended to."""


class Linear(Protocol):
    """What a rule asks of a linear map: `nn.Linear`, or several with the same inputs taken as one."""

    @property
    def weight(self) -> Tensor:
        """[V, D]"""

    @property
    def bias(self) -> Tensor | None:
        """[V]"""


@dataclass(frozen=True, slots=True)
class Joint:
    """Linear maps that read the same inputs, as one map to all their outputs."""

    weight: Tensor
    bias: Tensor | None


class Rule(Protocol):
    """What a rule of relevance propagation answers for each operation of the Transformer."""

    @property
    def through_softmax(self) -> bool:
        """Whether relevance goes on past attention weights to queries and keys, or weights count as constants."""

    @property
    def conservation(self) -> str:
        """Why relevance should be neither lost nor made.

        "shares" sum to one; "unstable" ones do on paper, but where an attention's contributions or factors cancel they
        are so huge that stabiliser and rounding eat the sum; "rescaled" ones have what an operation lost or made scaled
        away afterwards, so that a sum that is kept says nothing of the shares.
        """

    def start(self, logits: Tensor) -> Tensor:
        """The relevance that sets out from each logit."""

    def worth(self, values: Tensor) -> Tensor:
        """The relevance of one unit of what is carried, at neurons of these values."""

    def settled(self, before: Tensor, after: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """What is done once more with all that an attention to the encoder made of [B, G, Q, D]."""

    def top(self, weight: Tensor, bias: Tensor, states: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Multipliers [B, Q, D] of the states of each position's own logit [B, Q], and what its bias [B, Q] absorbed.

        weight: [B, Q, D], of each position's logit.
        """

    def linear(self, layer: Linear, inputs: Tensor, outputs: Tensor) -> Back:
        """The way back through a linear layer, or one with a ReLU after it: [B, Q, D] in, [B, Q, V] out."""

    def activation(self, sums: Tensor, hidden: Tensor) -> Back:
        """The way back from `hidden` [B, Q, V] past an activation, other than a ReLU, to the sums it was given."""

    def norm(self, norm: nn.Module, inputs: Tensor) -> Back:
        """The way back through a layer norm (or the identity in its place) that was given `inputs` [B, Q, D]."""

    def add(self, stream: Tensor, change: Tensor) -> Fork:
        """The way back through the sum of two [B, Q, D]."""

    def attention(self, seen: Attended) -> AttentionBack:
        """The way back through an attention."""

    def weighting(self, seen: Attended) -> AttentionBack:
        """The same where weights count as constants, whatever the rule does with those of a softmax."""


class Multipliers:
    """What rules have in common that carry multipliers and share a logit out as it is."""

    __slots__ = ()

    @property
    def conservation(self) -> str:
        """See `Rule`."""
        return "shares"

    def start(self, logits: Tensor) -> Tensor:
        """See `Rule`."""
        return logits

    def worth(self, values: Tensor) -> Tensor:
        """See `Rule`."""
        return values

    def settled(self, before: Tensor, after: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """See `Rule`."""
        return after

    def activation(self, sums: Tensor, hidden: Tensor) -> Back:
        """See `Rule`: relevance is unchanged where the multiplier is that of `hidden` times hidden / sums."""
        # An activation that is zero at zero is a slope there, and neither has relevance.
        slope = torch.where(sums == 0, 0.0, hidden / sums)
        return lambda multiplier, account: multiplier * first(slope, multiplier)

    def weighting(self, seen: Attended) -> AttentionBack:
        """See `Rule`."""
        return values_alone(seen)


def through_weights(seen: Attended, multiplier: Tensor) -> tuple[Tensor, Tensor]:
    """Multipliers [B, G, H, Q, K] of attention weights and of the scores below them, by the softmax's derivative."""
    at_weights = torch.einsum("bgqhe,bhke->bghqk", multiplier, seen.values)
    weights = seen.weights[:, None]
    return at_weights, weights * (at_weights - (weights * at_weights).sum(-1, keepdim=True))


def at_values(seen: Attended, multiplier: Tensor) -> Tensor:
    """Multipliers [B, G, K, H, E] of values."""
    return torch.einsum("bhqk,bgqhe->bgkhe", seen.weights, multiplier)


def values_alone(seen: Attended) -> AttentionBack:
    """The way back when attention weights count as constants: the same for every ratio without a bias."""
    return lambda multiplier, account: AtAttention(at_values(seen.part(multiplier), multiplier))


def at_keys_and_queries(seen: Attended, at_scores: Tensor) -> tuple[Tensor, Tensor]:
    """Multipliers of keys and queries from those of scores [B, G, H, Q, K]."""
    keys = torch.einsum("bghqk,bhqe->bgkhe", at_scores, seen.queries) * seen.scale
    return keys, torch.einsum("bghqk,bhke->bgqhe", at_scores, seen.keys) * seen.scale


@dataclass(frozen=True, slots=True)
class PlainRatio(Multipliers):
    """The paper's rule (Voita et al. 2019, App. A.2): w(u <- v) = W_uv u / sum over u' of W_u'v u'.

    A bias takes no relevance: the denominator leaves it out, so that relevance is conserved. Through the softmax, which
    the paper does not speak of, an attention counts as the linear function that its derivatives at queries, keys and
    values make of it, and shares relevance in the ratio of these contributions, which may nearly cancel.
    """

    stabiliser: float
    through_softmax: bool = False

    @property
    def conservation(self) -> str:
        """See `Rule`."""
        return "unstable" if self.through_softmax else "shares"

    def top(self, weight: Tensor, bias: Tensor, states: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """See `Rule`."""
        scale = logits / stabilised(logits - bias, self.stabiliser)
        return weight * scale[:, :, None], torch.zeros_like(logits)

    def linear(self, layer: Linear, inputs: Tensor, outputs: Tensor) -> Back:
        """See `Rule`."""
        if layer.bias is None and not (outputs == 0).any():  # outputs that a ReLU closed have nothing to share
            return lambda multiplier, account: multiplier @ layer.weight
        share = self._share(inputs @ layer.weight.T, outputs)
        return lambda multiplier, account: share(multiplier, account) @ layer.weight

    def norm(self, norm: nn.Module, inputs: Tensor) -> Back:
        """See `Rule`."""
        if not isinstance(norm, nn.LayerNorm):
            return unchanged
        slope, centred = slope_of(norm, inputs)
        share = self._share(centred * slope, centred * slope + norm.bias, slope)

        def back(multiplier: Tensor, account: Account) -> Tensor:
            """The multiplier of the input, by that of the output."""
            multiplier = share(multiplier, account)
            return multiplier - multiplier.mean(-1, keepdim=True)

        return back

    def add(self, stream: Tensor, change: Tensor) -> Fork:
        """See `Rule`."""
        return lambda multiplier, account: (multiplier, multiplier)

    def attention(self, seen: Attended) -> AttentionBack:
        """See `Rule`."""
        if not self.through_softmax:
            return values_alone(seen)
        # Each score takes part twice, as a product of a query and of a key.
        weighted = seen.weights * seen.scores
        from_scores = weighted @ seen.values - weighted.sum(-1, keepdim=True) * seen.outputs
        contributed = (seen.outputs + 2 * from_scores).transpose(1, 2)
        share = self._share(contributed, seen.outputs.transpose(1, 2))

        def back(multiplier: Tensor, account: Account) -> AtAttention:
            """The multiplier at each part of attention, by that of the output."""
            part, multiplier = seen.part(multiplier), share(multiplier, account)
            _, at_scores = through_weights(part, multiplier)
            return AtAttention(at_values(part, multiplier), *at_keys_and_queries(part, at_scores))

        return back

    def _share(self, sums: Tensor, outputs: Tensor, factor: Tensor | float = 1.0) -> Back:
        """From multipliers of `outputs` to relevance per unit of contribution, for contributions that make `sums`.

        factor: what it is multiplied by at once, which is quicker than afterwards for every step.
        """
        nothing = sums == 0
        scale = torch.where(nothing, 0.0, outputs / stabilised(sums, self.stabiliser)) * factor
        lost = outputs * nothing if nothing.any() else None

        def share(multiplier: Tensor, account: Account) -> Tensor:
            if lost is not None:
                account.absorb((multiplier * first(lost, multiplier)).flatten(3).sum(-1))
            return multiplier * first(scale, multiplier)

        return share


def slope_of(norm: nn.LayerNorm, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Gain over standard deviation, and the inputs less their mean, both [B, Q, D]."""
    centred = inputs - inputs.mean(-1, keepdim=True)
    return norm.weight / (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt(), centred

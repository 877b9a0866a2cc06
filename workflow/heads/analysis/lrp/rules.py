"""How one operation distributes relevance over its inputs: rules that use the ratio of contributions.

The relevance R of a neuron of value x is carried as its multiplier R / x. A map without bias then passes multipliers on
by its transposed weights alone, because the plain ratio's denominator is the neuron's own value; a residual sum gives
both its summands the multiplier of the sum; and a value of zero needs no special care. Only the rules of `released`
carry relevance itself, since they give some to neurons of value zero; `Rule.worth` shows the walk which of the two is
carried.

All other rules have three things in common: an activation passes relevance on unchanged, the standard deviation of a
layer norm is a constant, and the relevance of an output to which no input contributed ends there and is entered in the
account.

Shape letters: B batch, G generation step, Q/K query and key position, D width of the tensor in question, H heads, E
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
        """absorbed: the initial amount, [B, G], or [B, G, Q] to keep positions apart."""
        self.absorbed = absorbed

    @property
    def apart(self) -> bool:
        """Whether every position is its own step, so that nothing may be summed over positions."""
        return self.absorbed.ndim == 3

    def absorb(self, amount: Tensor) -> None:
        """Record an amount [B, G, Q] as absorbed."""
        self.absorbed = self.absorbed + (amount if self.apart else amount.sum(-1))


Back = Callable[[Tensor, Account], Tensor]
"""From multipliers [B, G, Q, D] of an operation's outputs to those of its inputs, for the whole trace or only for its
first sentences and positions."""

Fork = Callable[[Tensor, Account], tuple[Tensor, Tensor]]
"""The same for a sum, to both its summands."""


def unchanged(multiplier: Tensor, account: Account) -> Tensor:
    """The way back that leaves multipliers unchanged."""
    return multiplier


def first(part: Tensor, multiplier: Tensor) -> Tensor:
    """The part of a tensor [B, Q, D] that multipliers [B, G, Q, D] cover, with an axis of size one for G."""
    return part[: len(multiplier), None, : multiplier.shape[2]]


def stabilised(denominator: Tensor, stabiliser: float) -> Tensor:
    """The denominator moved away from zero by `stabiliser` in the direction of its sign, upwards at zero."""
    return torch.where(denominator < 0, denominator - stabiliser, denominator + stabiliser)


@dataclass(frozen=True, slots=True)
class Attended:
    """The tensors of one attention, as traced."""

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
    """Whether it is self-attention, so that keys are cut at the same position as queries."""

    def part(self, multiplier: Tensor) -> Attended:
        """The part that multipliers [B, G, Q, H, E] of head outputs cover."""
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
        """The factor of the scores."""
        return 1 / math.sqrt(self.queries.shape[-1])

    @property
    def scores(self) -> Tensor:
        """[B, H, Q, K], before the softmax and the mask."""
        return self.queries @ self.keys.transpose(-1, -2) * self.scale


@dataclass(frozen=True, slots=True)
class AtAttention:
    """Multipliers of an attention's inputs [B, G, Q or K, H, E]; queries and keys only through the softmax."""

    values: Tensor
    keys: Tensor | None = None
    queries: Tensor | None = None


AttentionBack = Callable[[Tensor, Account], AtAttention]
"""From multipliers [B, G, Q, H, E] of head outputs to those of the attention's inputs."""


class Linear(Protocol):
    """What a rule needs of a linear map: `nn.Linear`, or several maps of the same inputs as one."""

    @property
    def weight(self) -> Tensor:
        """[V, D]"""

    @property
    def bias(self) -> Tensor | None:
        """[V]"""


@dataclass(frozen=True, slots=True)
class Joint:
    """Linear maps of the same inputs, as one map to all their outputs."""

    weight: Tensor
    bias: Tensor | None


class Rule(Protocol):
    """A rule of relevance propagation: one method for each operation of the Transformer."""

    @property
    def through_softmax(self) -> bool:
        """Whether relevance passes through attention weights to queries and keys; if not, weights are constants."""

    @property
    def conservation(self) -> str:
        """How relevance is conserved: "shares", "unstable" or "rescaled".

        "shares" sum to one; "unstable" ones do on paper, but where an attention's contributions or factors cancel, they
        are so large that stabiliser and rounding spoil the sum; with "rescaled", what an operation lost or created is
        scaled away afterwards, so that a conserved sum says nothing about the shares.
        """

    def start(self, logits: Tensor) -> Tensor:
        """The initial relevance of each logit."""

    def worth(self, values: Tensor) -> Tensor:
        """The relevance of one unit of the quantity carried, at neurons with these values."""

    def settled(self, before: Tensor, after: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The parts `after`, into which cross-attention splits `before` [B, G, Q, D], after a last adjustment."""

    def top(self, weight: Tensor, bias: Tensor, states: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Multipliers [B, Q, D] of the states for each position's logit [B, Q], and what its bias absorbed [B, Q].

        weight: [B, Q, D], of each position's logit.
        """

    def linear(self, layer: Linear, inputs: Tensor, outputs: Tensor) -> Back:
        """The way back through a linear layer, with or without a ReLU after it: [B, Q, D] in, [B, Q, V] out."""

    def activation(self, sums: Tensor, hidden: Tensor) -> Back:
        """The way back from `hidden` [B, Q, V] through an activation other than a ReLU to its inputs `sums`."""

    def norm(self, norm: nn.Module, inputs: Tensor) -> Back:
        """The way back through a layer norm (or the identity in its place) with `inputs` [B, Q, D]."""

    def add(self, stream: Tensor, change: Tensor) -> Fork:
        """The way back through the sum of two [B, Q, D]."""

    def attention(self, seen: Attended) -> AttentionBack:
        """The way back through an attention."""

    def weighting(self, seen: Attended) -> AttentionBack:
        """The way back through an attention with constant weights, even if the rule passes through a softmax."""


class Multipliers:
    """Base class of rules that carry multipliers and start from the logit itself."""

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
        """See `Rule`: relevance is unchanged if the multiplier of `hidden` is multiplied by hidden / sums."""
        # Sums of zero, where activations are zero too, have no relevance.
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
    """The way back if attention weights are constants: the same for every ratio without a bias."""
    return lambda multiplier, account: AtAttention(at_values(seen.part(multiplier), multiplier))


def at_keys_and_queries(seen: Attended, at_scores: Tensor) -> tuple[Tensor, Tensor]:
    """Multipliers of keys and queries from those of scores [B, G, H, Q, K]."""
    keys = torch.einsum("bghqk,bhqe->bgkhe", at_scores, seen.queries) * seen.scale
    return keys, torch.einsum("bghqk,bhke->bgqhe", at_scores, seen.keys) * seen.scale


@dataclass(frozen=True, slots=True)
class PlainRatio(Multipliers):
    """The paper's rule (Voita et al. 2019, App. A.2): w(u <- v) = W_uv u / sum over u' of W_u'v u'.

    A bias takes no relevance: the denominator leaves it out, so that relevance is conserved. Through the softmax, which
    the paper does not mention, an attention is treated as the linear function given by its derivatives at queries, keys
    and values, and distributes relevance in the ratio of these contributions, which may nearly cancel.
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
        if layer.bias is None and not (outputs == 0).any():  # outputs closed by a ReLU have nothing to distribute
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
            """The multiplier of the input, from that of the output."""
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
        # Each score counts twice, once for its query and once for its key.
        weighted = seen.weights * seen.scores
        from_scores = weighted @ seen.values - weighted.sum(-1, keepdim=True) * seen.outputs
        contributed = (seen.outputs + 2 * from_scores).transpose(1, 2)
        share = self._share(contributed, seen.outputs.transpose(1, 2))

        def back(multiplier: Tensor, account: Account) -> AtAttention:
            """The multiplier at each part of attention, from that of the output."""
            part, multiplier = seen.part(multiplier), share(multiplier, account)
            _, at_scores = through_weights(part, multiplier)
            return AtAttention(at_values(part, multiplier), *at_keys_and_queries(part, at_scores))

        return back

    def _share(self, sums: Tensor, outputs: Tensor, factor: Tensor | float = 1.0) -> Back:
        """The way back to relevance per unit of contribution, for contributions that sum to `sums`.

        factor: multiplied in here once, which is faster than afterwards for every step.
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
    """Gain divided by standard deviation, and the inputs minus their mean, both [B, Q, D]."""
    centred = inputs - inputs.mean(-1, keepdim=True)
    return norm.weight / (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt(), centred

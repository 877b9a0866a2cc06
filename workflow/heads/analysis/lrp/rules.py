"""How one operation distributes relevance over its inputs: what all rules have in common.

The relevance R of a neuron of value x is carried as its multiplier R / x. A map without bias then passes multipliers on
by its transposed weights alone, because the plain ratio's denominator is the neuron's own value; a residual sum gives
both its summands the multiplier of the sum; and a value of zero needs no special care. Only the rules of `released`
carry relevance itself, since they give some to neurons of value zero; `Rule.relevance_per_unit` shows the
backward pass which of the two is carried.

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
    scaled: bool = True
    """Whether products of queries and keys are divided by sqrt(E)."""

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
            self.scaled,
        )

    @property
    def scale(self) -> float:
        """The factor of the scores."""
        return 1 / math.sqrt(self.queries.shape[-1]) if self.scaled else 1.0

    @property
    def scores(self) -> Tensor:
        """[B, H, Q, K], before the softmax, the mask and biases of distances, which are no input."""
        return self.queries @ self.keys.transpose(-1, -2) * self.scale

    def through_weights(self, multiplier: Tensor) -> tuple[Tensor, Tensor]:
        """Multipliers [B, G, H, Q, K] of weights and of the scores below them, by the softmax's derivative."""
        at_weights = torch.einsum("bgqhe,bhke->bghqk", multiplier, self.values)
        weights = self.weights[:, None]
        return at_weights, weights * (at_weights - (weights * at_weights).sum(-1, keepdim=True))

    def at_values(self, multiplier: Tensor) -> Tensor:
        """Multipliers [B, G, K, H, E] of values."""
        return torch.einsum("bhqk,bgqhe->bgkhe", self.weights, multiplier)

    def at_keys_and_queries(self, at_scores: Tensor) -> tuple[Tensor, Tensor]:
        """Multipliers of keys and queries from those of scores [B, G, H, Q, K]."""
        keys = torch.einsum("bghqk,bhqe->bgkhe", at_scores, self.queries) * self.scale
        return keys, torch.einsum("bghqk,bhke->bgqhe", at_scores, self.keys) * self.scale


@dataclass(frozen=True, slots=True)
class AtAttention:
    """Multipliers of an attention's inputs [B, G, Q or K, H, E]; queries and keys only through the softmax."""

    values: Tensor
    keys: Tensor | None = None
    queries: Tensor | None = None


AttentionBack = Callable[[Tensor, Account], AtAttention]
"""From multipliers [B, G, Q, H, E] of head outputs to those of the attention's inputs."""


class Rule:
    """Base class of rules, with one method for each operation of the Transformer.

    What is defined here holds for rules that carry multipliers; they start from the logit itself.
    """

    __slots__ = ()
    through_softmax: bool
    """Whether relevance passes through attention weights to queries and keys; if not, weights are constants."""

    @property
    def conservation(self) -> str:
        """How relevance is conserved: "shares", "unstable" or "rescaled".

        "shares" sum to one; "unstable" ones do on paper, but where an attention's contributions or factors cancel, they
        are so large that stabiliser and rounding spoil the sum; with "rescaled", what an operation lost or created is
        scaled away afterwards, so that a conserved sum says nothing about the shares.
        """
        return "shares"

    def relevance_per_unit(self, values: Tensor) -> Tensor:
        """The relevance of one unit of the quantity carried, at neurons with these values; of a logit, the initial."""
        return values

    def rescaled(self, before: Tensor, after: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The parts `after`, into which cross-attention splits `before` [B, G, Q, D], scaled to its sum if need be."""
        return after

    def top(self, weight: Tensor, bias: Tensor, states: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Multipliers [B, Q, D] of the states for each position's logit [B, Q], and what its bias absorbed [B, Q].

        weight: [B, Q, D], of each position's logit.
        """
        raise NotImplementedError

    def linear(self, weight: Tensor, bias: Tensor | None, inputs: Tensor, outputs: Tensor) -> Back:
        """The way back through a linear map [V, D], with or without a ReLU after it: [B, Q, D] in, [B, Q, V] out."""
        raise NotImplementedError

    def activation(self, sums: Tensor, hidden: Tensor) -> Back:
        """The way back from `hidden` [B, Q, V] through an activation other than a ReLU to its inputs `sums`.

        Relevance is unchanged if the multiplier of `hidden` is multiplied by hidden / sums.
        """
        # Sums of zero, where activations are zero too, have no relevance.
        slope = torch.where(sums == 0, 0.0, hidden / sums)
        return lambda multiplier, account: multiplier * first(slope, multiplier)

    def norm(self, norm: nn.LayerNorm, inputs: Tensor) -> Back:
        """The way back through a layer norm with `inputs` [B, Q, D]."""
        raise NotImplementedError

    def rms_norm(self, norm: nn.RMSNorm, inputs: Tensor) -> Back:
        """The way back through a norm without mean: its root mean square is a constant, so each output has one input.

        So relevance passes on as it is (Achtibat et al. 2024, prop. 3.4).
        """
        slope = self.relevance_per_unit(
            norm.weight * (inputs.square().mean(-1, keepdim=True) + (norm.eps or 0.0)).rsqrt()
        )
        return lambda multiplier, account: multiplier * first(slope, multiplier)

    def product(self, one: Tensor, other: Tensor) -> Fork:
        """The way back through the product of two [B, Q, D], which get half of its relevance each.

        So it is in Achtibat et al. 2024, prop. 3.3; the paper and the released code know no such product.
        """
        halves = self.relevance_per_unit(other) / 2, self.relevance_per_unit(one) / 2

        def back(multiplier: Tensor, account: Account) -> tuple[Tensor, Tensor]:
            """The multipliers of both factors, from that of the product."""
            at_one, at_other = (multiplier * first(half, multiplier) for half in halves)
            return at_one, at_other

        return back

    def add(self, stream: Tensor, change: Tensor) -> Fork:
        """The way back through the sum of two [B, Q, D]."""
        return lambda multiplier, account: (multiplier, multiplier)

    def attention(self, seen: Attended) -> AttentionBack:
        """The way back through an attention."""
        raise NotImplementedError

    def weighting(self, seen: Attended) -> AttentionBack:
        """The way back through an attention with constant weights, even if the rule passes through a softmax.

        It is the same for every ratio without a bias.
        """
        return lambda multiplier, account: AtAttention(seen.part(multiplier).at_values(multiplier))


def slope_of(norm: nn.LayerNorm, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Gain divided by standard deviation, and the inputs minus their mean, both [B, Q, D]."""
    centred = inputs - inputs.mean(-1, keepdim=True)
    return norm.weight / (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt(), centred

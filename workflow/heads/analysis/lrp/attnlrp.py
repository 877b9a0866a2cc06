"""AttnLRP: the rule of Achtibat et al. 2024. Shape letters as in `heads.analysis.lrp.rules`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heads.analysis.lrp.rules import (
    Account,
    AtAttention,
    Attended,
    AttentionBack,
    Back,
    Fork,
    Linear,
    Multipliers,
    at_keys_and_queries,
    at_values,
    first,
    slope_of,
    through_weights,
    unchanged,
    values_alone,
)


@dataclass(frozen=True, slots=True)
class AttnLrp(Multipliers):
    """AttnLRP (Achtibat et al. 2024) with vanishing stabilisers, where it is a gradient times its input.

    Sums have the bias in the denominator (eq. 8), so that biases absorb relevance; a product gives half to each of two
    factors (prop. 3.3); the softmax is expanded at its input, with a constant that absorbs relevance (prop. 3.1); a
    normalisation passes relevance on (prop. 3.4), with its mean as one more sum. Through values alone it is the rule
    that the authors compare with, after Ali et al. 2022.
    """

    through_softmax: bool = True

    def top(self, weight: Tensor, bias: Tensor, states: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """See `Rule`."""
        return weight, bias

    def linear(self, layer: Linear, inputs: Tensor, outputs: Tensor) -> Back:
        """See `Rule`."""
        # Without a ReLU, an output of exactly zero also counts as closed; it has no relevance anyway.
        closed = outputs == 0
        shut = (~closed).to(outputs) if closed.any() else None

        def back(multiplier: Tensor, account: Account) -> Tensor:
            """The multiplier of the input, from that of the output."""
            if shut is not None:
                multiplier = multiplier * first(shut, multiplier)
            if layer.bias is not None:
                account.absorb(multiplier @ layer.bias)
            return multiplier @ layer.weight

        return back

    def norm(self, norm: nn.Module, inputs: Tensor) -> Back:
        """See `Rule`."""
        if not isinstance(norm, nn.LayerNorm):
            return unchanged
        slope, _ = slope_of(norm, inputs)

        def back(multiplier: Tensor, account: Account) -> Tensor:
            """The multiplier of the input, from that of the output."""
            account.absorb(multiplier @ norm.bias)
            multiplier = multiplier * first(slope, multiplier)
            return multiplier - multiplier.mean(-1, keepdim=True)

        return back

    def add(self, stream: Tensor, change: Tensor) -> Fork:
        """See `Rule`."""
        return lambda multiplier, account: (multiplier, multiplier)

    def attention(self, seen: Attended) -> AttentionBack:
        """See `Rule`."""
        if not self.through_softmax:
            return values_alone(seen)
        scores = seen.scores
        constant = seen.weights * (1 - scores + (seen.weights * scores).sum(-1, keepdim=True))

        def back(multiplier: Tensor, account: Account) -> AtAttention:
            """The multiplier at each part of attention, from that of the output."""
            part, multiplier = seen.part(multiplier), multiplier / 2
            at_weights, at_scores = through_weights(part, multiplier)
            queries, keys = part.weights.shape[2:]
            ended = constant[: len(multiplier), :, :queries, :keys]
            account.absorb(torch.einsum("bghqk,bhqk->bgq", at_weights, ended))
            return AtAttention(at_values(part, multiplier), *at_keys_and_queries(part, at_scores / 2))

        return back

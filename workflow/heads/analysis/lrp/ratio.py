"""Relevance in the ratio of contributions: the paper's rule, the paper's rule for products, and AttnLRP.

Shape letters as in `heads.analysis.lrp.rules`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heads.analysis.lrp.rules import (
    Account,
    AtAttention,
    Attended,
    AttentionBack,
    Back,
    Rule,
    first,
    slope_of,
    stabilised,
)


@dataclass(frozen=True, slots=True)
class PlainRatio(Rule):
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

    def linear(self, weight: Tensor, bias: Tensor | None, inputs: Tensor, outputs: Tensor) -> Back:
        """See `Rule`."""
        if bias is None and not (outputs == 0).any():  # outputs closed by a ReLU have nothing to distribute
            return lambda multiplier, account: multiplier @ weight
        share = self._share(inputs @ weight.T, outputs)
        return lambda multiplier, account: share(multiplier, account) @ weight

    def norm(self, norm: nn.LayerNorm, inputs: Tensor) -> Back:
        """See `Rule`."""
        slope, centred = slope_of(norm, inputs)
        share = self._share(centred * slope, centred * slope + norm.bias, slope)

        def back(multiplier: Tensor, account: Account) -> Tensor:
            """The multiplier of the input, from that of the output."""
            multiplier = share(multiplier, account)
            return multiplier - multiplier.mean(-1, keepdim=True)

        return back

    def attention(self, seen: Attended) -> AttentionBack:
        """See `Rule`."""
        if not self.through_softmax:
            return self.weighting(seen)
        # Each score counts twice, once for its query and once for its key.
        weighted = seen.weights * seen.scores
        from_scores = weighted @ seen.values - weighted.sum(-1, keepdim=True) * seen.outputs
        contributed = (seen.outputs + 2 * from_scores).transpose(1, 2)
        share = self._share(contributed, seen.outputs.transpose(1, 2))

        def back(multiplier: Tensor, account: Account) -> AtAttention:
            """The multiplier at each part of attention, from that of the output."""
            part, multiplier = seen.part(multiplier), share(multiplier, account)
            _, at_scores = part.through_weights(multiplier)
            return AtAttention(part.at_values(multiplier), *part.at_keys_and_queries(at_scores))

        return back

    def _share(self, sums: Tensor, outputs: Tensor, factor: Tensor | float = 1.0) -> Back:
        """The way back to relevance per unit of contribution, for contributions that sum to `sums`.

        factor: multiplied in here once, which is faster than afterwards for every step.
        """
        nothing = sums == 0
        scale = torch.where(nothing, 0.0, outputs / stabilised(sums, self.stabiliser)) * factor
        lost = outputs * nothing if nothing.any() else None

        def share(multiplier: Tensor, account: Account) -> Tensor:
            """The multiplier per unit of contribution, from that of the output."""
            if lost is not None:
                account.absorb((multiplier * first(lost, multiplier)).flatten(3).sum(-1))
            return multiplier * first(scale, multiplier)

        return share


@dataclass(frozen=True, slots=True)
class PlainProduct(PlainRatio):
    """The plain ratio with the paper's rule for products: for v = product of factors u', w(u <- v) = u / sum of u'.

    A head's output is a sum of products, attention weight times value, and relevance is distributed over them in the
    ratio of their contributions. Of a product weight * value, the weight gets weight / (weight + value) and the value
    the rest. The weight's part goes on to its score, since the appendix ignores non-linearities and says nothing else
    about the softmax; from there to the products of query and key neurons that the score sums up, and from each product
    to its two factors by the same rule. The standard deviation of a layer norm stays a constant and is not a factor.

    Shares sum to one, but where factors nearly cancel they are huge, with opposite signs.
    """

    through_softmax: bool = True

    def attention(self, seen: Attended) -> AttentionBack:
        """See `Rule`."""
        at_sums = shared(seen.weights[..., None], seen.values[:, :, None], self.stabiliser)
        products = shared(seen.queries[:, :, :, None], seen.keys[:, :, None], self.stabiliser)
        summed = seen.queries @ seen.keys.transpose(-1, -2)
        at_scores = products / stabilised(summed, self.stabiliser)[..., None]

        def back(multiplier: Tensor, account: Account) -> AtAttention:
            """The multiplier at each part of attention, from that of the output."""
            part = seen.part(multiplier)
            cut = (slice(len(multiplier)), slice(None), *(slice(size) for size in part.weights.shape[2:]))
            at_weights = torch.einsum("bgqhe,bhqke->bghqk", multiplier, at_sums[cut])
            relevance = at_weights * part.weights[:, None]
            return AtAttention(
                torch.einsum("bgqhe,bhqke->bgkhe", multiplier, at_sums[cut]),
                torch.einsum("bghqk,bhqke->bgkhe", relevance, at_scores[cut]),
                torch.einsum("bghqk,bhqke->bgqhe", relevance, at_scores[cut]),
            )

        return back


def shared(one: Tensor, other: Tensor, stabiliser: float) -> Tensor:
    """Multiplier of either factor per multiplier of their product: the product divided by the factors' sum."""
    return one * other / stabilised(one + other, stabiliser)


@dataclass(frozen=True, slots=True)
class AttnLrp(Rule):
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

    def linear(self, weight: Tensor, bias: Tensor | None, inputs: Tensor, outputs: Tensor) -> Back:
        """See `Rule`."""
        # Without a ReLU, an output of exactly zero also counts as closed; it has no relevance anyway.
        closed = outputs == 0
        shut = (~closed).to(outputs) if closed.any() else None

        def back(multiplier: Tensor, account: Account) -> Tensor:
            """The multiplier of the input, from that of the output."""
            if shut is not None:
                multiplier = multiplier * first(shut, multiplier)
            if bias is not None:
                account.absorb(multiplier @ bias)
            return multiplier @ weight

        return back

    def norm(self, norm: nn.LayerNorm, inputs: Tensor) -> Back:
        """See `Rule`."""
        slope, _ = slope_of(norm, inputs)

        def back(multiplier: Tensor, account: Account) -> Tensor:
            """The multiplier of the input, from that of the output."""
            account.absorb(multiplier @ norm.bias)
            multiplier = multiplier * first(slope, multiplier)
            return multiplier - multiplier.mean(-1, keepdim=True)

        return back

    def attention(self, seen: Attended) -> AttentionBack:
        """See `Rule`."""
        if not self.through_softmax:
            return self.weighting(seen)
        scores = seen.scores
        constant = seen.weights * (1 - scores + (seen.weights * scores).sum(-1, keepdim=True))

        def back(multiplier: Tensor, account: Account) -> AtAttention:
            """The multiplier at each part of attention, from that of the output."""
            part, multiplier = seen.part(multiplier), multiplier / 2
            at_weights, at_scores = part.through_weights(multiplier)
            queries, keys = part.weights.shape[2:]
            ended = constant[: len(multiplier), :, :queries, :keys]
            account.absorb(torch.einsum("bghqk,bhqk->bgq", at_weights, ended))
            return AtAttention(part.at_values(multiplier), *part.at_keys_and_queries(at_scores / 2))

        return back

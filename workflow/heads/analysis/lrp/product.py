"""The paper's plain ratio with its rule for products: plain-product (Voita et al. 2019, App. A.2).

Shape letters as in `heads.analysis.lrp.rules`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heads.analysis.lrp.rules import Account, AtAttention, Attended, AttentionBack, PlainRatio, stabilised


@dataclass(frozen=True, slots=True)
class PlainProduct(PlainRatio):
    """For v = product of factors u', w(u <- v) = u / sum of u'; otherwise the plain ratio, softmax ignored.

    A head's output is a sum of products, attention weight times value, and relevance is distributed over them in the
    ratio of their contributions. Of a product weight * value, the weight gets weight / (weight + value) and the value
    the rest. The weight's part goes on to its score, since the appendix ignores non-linearities and says nothing else
    about the softmax; from there to the products of query and key neurons that the score sums up, and from each product
    to its two factors by the same rule. The standard deviation of a layer norm stays a constant and is not a factor.

    Shares sum to one, but where factors nearly cancel they are huge, with opposite signs.
    """

    through_softmax: bool = True

    def attention(self, seen: Attended) -> AttentionBack:
        """See `heads.analysis.lrp.rules.Rule`."""
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

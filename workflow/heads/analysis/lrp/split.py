"""Relevance rules that go by the sign of contributions: z-plus and alpha-beta (Bach et al. 2015, eq. 60).

Of an output's relevance, a share alpha goes to the inputs that raised it, in the ratio of their contributions, and a
share beta to those that lowered it. The two are added (alpha + beta = 1): z-plus has alpha 1 and beta 0, alpha-beta a
half each. Where all contributions have one sign, up to a share of `stabiliser`, that side gets everything; under
z-plus, an output that nothing raised keeps its relevance, which the account absorbs. Biases take no part. Bach et al.
describe layers of weighted sums; how the other operations of a Transformer become such layers is our choice: a layer
norm by its derivative at a fixed standard deviation, a residual sum by its two summands, an attention by its
derivatives at queries, keys and values. The code that Voita et al. released starts from the same equation but does
otherwise: see `heads.analysis.lrp.released`.

Shape letters as in `heads.analysis.lrp.rules`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from heads.analysis.lrp.rules import Account, AtAttention, Attended, AttentionBack, Back, Fork, Rule, first, slope_of

Products = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Products of the same tensor with a map's positive and with its negative entries."""


def signs(part: Tensor) -> tuple[Tensor, Tensor]:
    """The positive and the negative part of a tensor."""
    return part.clamp(min=0), part.clamp(max=0)


@dataclass(frozen=True, slots=True)
class SplitMap:
    """A linear map split by the signs of its entries, forwards and backwards."""

    forwards: Products
    backwards: Products

    def contributions(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of what raises each output, and of what lowers it (<= 0)."""
        raising, lowering = self.forwards(inputs.clamp(min=0))
        lowering_too, raising_too = self.forwards(inputs.clamp(max=0))
        return raising + raising_too, lowering + lowering_too

    def back(self, inputs: Tensor, raised: Tensor, lowered: Tensor | None) -> Tensor:
        """Multipliers of inputs from relevance per unit of raising and of lowering contributions."""
        above, below = self.backwards(raised)
        if lowered is not None:
            below_too, above_too = self.backwards(lowered)
            above += above_too
            below += below_too
        return by_sign(inputs, above, below)


def by_sign(values: Tensor, above: Tensor, below: Tensor) -> Tensor:
    """The multiplier `above` for positive values, else `below`; values of zero, without relevance, may have either."""
    return torch.where(values > 0, above, below)


def matrix(weight: Tensor) -> SplitMap:
    """The split map of a matrix [V, D] that is the same at all positions."""
    above, below = signs(weight)
    return SplitMap(lambda x: (x @ above.T, x @ below.T), lambda y: (y @ above, y @ below))


def normalisation(slope: Tensor) -> SplitMap:
    """The split map diag(slope) (identity - 1/D) of a layer norm with `slope` [B, Q, D], without forming the matrix."""
    width = slope.shape[-1]
    above, below = signs(slope)
    turned = bool(below.any())

    def products(x: Tensor) -> tuple[Tensor, Tensor]:
        """Products of the inputs with the map's positive and with its negative entries."""
        own, others = x * (1 - 1 / width), (x.sum(-1, keepdim=True) - x) / width
        return above * own - below * others, below * own - above * others

    def products_back(y: Tensor) -> tuple[Tensor, Tensor]:
        """The same for the transposed map."""
        positive, negative = y * first(above, y), y * first(below, y) if turned else None
        others = (positive - positive.sum(-1, keepdim=True)) / width
        positive = positive * (1 - 1 / width)
        if negative is None:
            return positive, others
        positive = positive - (negative.sum(-1, keepdim=True) - negative) / width
        return positive, others + negative * (1 - 1 / width)

    return SplitMap(products, products_back)


Split = Callable[[Tensor, Account], tuple[Tensor, Tensor | None]]
"""From multipliers of outputs to relevance per unit of raising and of lowering contributions (None under z-plus)."""


@dataclass(frozen=True, slots=True)
class SignSplit(Rule):
    """Alpha-beta with beta = 1 - alpha; z-plus is alpha = 1."""

    alpha: float
    stabiliser: float
    through_softmax: bool = True

    def _split(self, raised: Tensor, lowered: Tensor, outputs: Tensor) -> Split:
        """The `Split` of outputs [B, Q, ...] whose raising and lowering contributions sum to `raised` and `lowered`."""
        # Sums of one sign never cancel, so no stabiliser is added. A negligible side counts as absent: otherwise a
        # recurrent unit's first candidates, long forgotten, would get half of an output's relevance.
        least = self.stabiliser * (raised - lowered)
        no_raising, no_lowering = raised <= least, -lowered <= least
        alpha = torch.where(no_lowering, 1.0, self.alpha) if self.alpha < 1 else torch.ones_like(raised)
        up = torch.where(no_raising, 0.0, alpha * outputs / raised)
        lost, down = no_raising, None
        if self.alpha < 1:
            beta = torch.where(no_raising, 1.0, 1 - self.alpha)
            down = torch.where(no_lowering, 0.0, beta * outputs / lowered)
            lost = no_raising & no_lowering
        ended = outputs * lost
        kept = ended if ended.any() else None

        def split(multiplier: Tensor, account: Account) -> tuple[Tensor, Tensor | None]:
            """Relevance per unit of raising and of lowering contributions, None for the latter under z-plus."""
            if kept is not None:
                account.absorb((multiplier * first(kept, multiplier)).flatten(3).sum(-1))
            lowering = None if down is None else multiplier * first(down, multiplier)
            return multiplier * first(up, multiplier), lowering

        return split

    def _through(self, split_map: SplitMap, inputs: Tensor, outputs: Tensor) -> Back:
        split = self._split(*split_map.contributions(inputs), outputs)
        return lambda multiplier, account: split_map.back(first(inputs, multiplier), *split(multiplier, account))

    def top(self, weight: Tensor, bias: Tensor, states: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """See `Rule`."""
        contributions = weight * states
        raised, lowered = (part.sum(-1) for part in signs(contributions))
        account = Account(torch.zeros_like(logits)[:, None])
        split = self._split(raised[..., None], lowered[..., None], logits[..., None])
        up, down = split(torch.ones_like(logits)[:, None, :, None], account)
        down = torch.zeros_like(up) if down is None else down
        multiplier = torch.where(contributions > 0, up[:, 0], torch.where(contributions < 0, down[:, 0], 0.0))
        return weight * multiplier, account.absorbed[:, 0]

    def linear(self, weight: Tensor, bias: Tensor | None, inputs: Tensor, outputs: Tensor) -> Back:
        """See `Rule`."""
        if (inputs < 0).any():
            return self._through(matrix(weight), inputs, outputs)
        # After a ReLU a weight's sign alone decides, which saves half of the products.
        above, below = signs(weight)
        split = self._split(inputs @ above.T, inputs @ below.T, outputs)

        def back(multiplier: Tensor, account: Account) -> Tensor:
            """The multiplier of the input, from that of the output."""
            up, down = split(multiplier, account)
            return up @ above if down is None else up @ above + down @ below

        return back

    def norm(self, norm: nn.LayerNorm, inputs: Tensor) -> Back:
        """See `Rule`."""
        slope, centred = slope_of(norm, inputs)
        return self._through(normalisation(slope), inputs, centred * slope + norm.bias)

    def add(self, stream: Tensor, change: Tensor) -> Fork:
        """See `Rule`."""
        raised, lowered = (one + other for one, other in zip(signs(stream), signs(change), strict=True))
        split = self._split(raised, lowered, stream + change)

        def back(multiplier: Tensor, account: Account) -> tuple[Tensor, Tensor]:
            """The multiplier of both inputs, from that of the output."""
            up, down = split(multiplier, account)
            down = torch.zeros_like(up) if down is None else down
            parts = (first(part, multiplier) for part in (stream, change))
            at_stream, at_change = (by_sign(part, up, down) for part in parts)
            return at_stream, at_change

        return back

    def attention(self, seen: Attended) -> AttentionBack:
        """See `Rule`."""
        raised, lowered = (seen.weights @ part for part in signs(seen.values))
        softmax = ThroughSoftmax(seen) if self.through_softmax else None
        if softmax is not None:
            raised, lowered = raised + softmax.raised, lowered + softmax.lowered
        split = self._split(raised.transpose(1, 2), lowered.transpose(1, 2), seen.outputs.transpose(1, 2))

        def back(multiplier: Tensor, account: Account) -> AtAttention:
            """The multiplier at each part of attention, from that of the output."""
            part = seen.part(multiplier)
            up, down = split(multiplier, account)
            values = part.values.transpose(1, 2)[:, None]
            above = part.at_values(up)
            passed = above * (values > 0) if down is None else by_sign(values, above, part.at_values(down))
            return AtAttention(passed, *(softmax.at_keys_and_queries(up, down) if softmax else ()))

        return back

    def weighting(self, seen: Attended) -> AttentionBack:
        """See `Rule`."""
        return replace(self, through_softmax=False).attention(seen)


class ThroughSoftmax:
    """Contributions of queries and keys to head outputs by the derivatives of the softmax, split by sign.

    d output[q, e] / d key[k, f] = change[q, k, e] * query[q, f], with change = weight * (value - output) / sqrt(E), and
    d output[q, e] / d query[q, f] = sum over k of change[q, k, e] * key[k, f].
    """

    def __init__(self, seen: Attended) -> None:
        self.seen = seen
        (up, down), (above, below) = signs(seen.queries), signs(seen.keys.transpose(-1, -2))
        apart = torch.stack([up @ above + down @ below, up @ below + down @ above], -1)
        contributed = torch.cat([apart, apart.flip(-1), torch.stack([up, down], -1), torch.stack([down, up], -1)], 3)

        # Positions first, so that those of one pass are contiguous in memory. Sums and concatenations are fast only for
        # contiguous tensors.
        outputs, weights = (part.permute(2, 0, 1, 3).contiguous() for part in (seen.outputs, seen.weights * seen.scale))
        change = seen.values.transpose(-1, -2).contiguous() - outputs[..., None]
        change *= weights[:, :, :, None]
        slope = change @ seen.keys
        self.derivatives = torch.cat([*signs(change), *signs(slope)], -1)
        """[Q, B, H, E, 2 K + 2 E]: positive and negative changes, then positive and negative slopes."""
        sums = self.derivatives @ contributed.permute(2, 0, 1, 3, 4)
        self.raised, self.lowered = sums.permute(1, 2, 0, 3, 4).unbind(-1)

    def at_keys_and_queries(self, up: Tensor, down: Tensor | None) -> tuple[Tensor, Tensor]:
        """Multipliers of keys [B, G, K, H, E] and of queries [B, G, Q, H, E].

        up, down: relevance per unit of raising and of lowering contributions [B, G, Q, H, E].
        """
        # All keys: masked ones have weights of zero, and cutting them out would make a copy.
        keys, width = self.seen.keys.shape[2:]
        sizes = [keys, keys, width, width]
        raising, lowering, above, below = self._products(up).split(sizes, -1)
        if down is not None:
            raising_too, lowering_too, above_too, below_too = self._products(down).split(sizes, -1)
            raising += lowering_too
            lowering += raising_too
            above += below_too
            below += above_too
        queries = self.seen.queries[: len(up), :, : up.shape[2]].permute(2, 0, 1, 3)[:, :, :, None]
        at_queries = by_sign(queries, above, below)
        at_keys = self._at_keys(raising, lowering)
        return at_keys[:, :, : self.seen.part(up).keys.shape[2]], at_queries.permute(1, 3, 0, 2, 4)

    def _products(self, per_unit: Tensor) -> Tensor:
        """Products of `per_unit` with the derivatives, [Q, B, H, G, 2 K + 2 E]."""
        return per_unit.permute(2, 0, 3, 1, 4) @ self.derivatives[: per_unit.shape[2], : len(per_unit)]

    def _at_keys(self, raising: Tensor, lowering: Tensor) -> Tensor:
        """Multipliers of keys, from relevance per unit of positive and negative query-key products [Q, B, H, G, K]."""
        seen, (positions, sentences) = self.seen, raising.shape[:2]
        queries = torch.cat(signs(seen.queries[:sentences, :, :positions]), -1)
        apart = (part.permute(1, 2, 0, 3, 4).flatten(3) for part in (raising, lowering))
        positive, negative = (part.transpose(2, 3) @ queries for part in apart)
        width = seen.queries.shape[-1]
        above = positive[..., :width] + negative[..., width:]
        below = negative[..., :width] + positive[..., width:]
        above, below = (part.unflatten(2, raising.shape[3:]).permute(0, 2, 3, 1, 4) for part in (above, below))
        return by_sign(seen.keys[:sentences].transpose(1, 2)[:, None], above, below)

"""What the code that Voita et al. released does: voita-2019 and voita-2021.

Facts read in github.com/lena-voita/the-story-of-heads, commits 3b5734d (June 2019) and 1c42004 (June 2021, corrected
after a find of Wenxu Li's; between them, 40bc631 of November 2020 normalised over outputs instead of inputs, passed
layer norms through and halved residual sums). Neither is the paper's plain ratio. Reproduced of both: relevance 1 sets
out, not the logit; what the code takes as one operation, so that queries, keys and values of a self-attention, and keys
and values of an attention to the encoder, are one linear map; cropping to absolute values and rescaling after each
operation; what is done with cut weights, biases and neurons of value zero; the constants.

Not reproduced: single precision; a batch that is rescaled as a whole (here each sentence and step by itself, as theirs
were given one at a time). Biases of attention projections, which only imported models have, and activations other than
a ReLU are treated here as those of feed-forward layers. The 2019 release has no script that says where LRP starts or is
read off: both are as in the paper, at the largest logit and the head's outputs.

Attention weights are no neurons here, under neither: an attention is one operation on queries, keys and values, by its
derivatives. Relevance is carried itself, not as a multiplier: it is nowhere negative, and neurons of value zero get
some. Rescaling keeps its sum up to the constant `eps`, which takes about that much from each position or operation, so
that an account that balances says nothing of the shares.
Letters of shapes as in `heads.analysis.lrp.rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    at_keys_and_queries,
    at_values,
    first,
    through_weights,
    unchanged,
)
from heads.analysis.lrp.split import SplitMap, ThroughSoftmax, matrix
from heads.base.files import UserError


def whole(account: Account) -> int:
    """The first axis of a relevance [B, G, Q, ...] that belongs to one step's walk."""
    return 3 if account.apart else 2


def total(parts: Sequence[Tensor], axis: int) -> Tensor:
    """What all parts have together from an axis on, as a tensor [..., 1, 1, 1] of their common rank."""
    return torch.stack([part.sum(tuple(range(axis, part.ndim)), keepdim=True) for part in parts]).sum(0)


def rescaled(parts: Sequence[Tensor], relevance: Tensor, axis: int, eps: float) -> list[Tensor]:
    """The parts, none negative, with the sum from an axis on that `relevance` of the same rank has, less about eps."""
    factor = total([relevance], axis) / (total(parts, axis) + eps)
    return [part * factor for part in parts]


class Relevances:
    """What both have in common."""

    __slots__ = ()

    @property
    def through_softmax(self) -> bool:
        """See `heads.analysis.lrp.rules.Rule`."""
        return True

    @property
    def conservation(self) -> str:
        """See `heads.analysis.lrp.rules.Rule`."""
        return "rescaled"

    def start(self, logits: Tensor) -> Tensor:
        """See `heads.analysis.lrp.rules.Rule`."""
        return torch.ones_like(logits)

    def worth(self, values: Tensor) -> Tensor:
        """See `heads.analysis.lrp.rules.Rule`."""
        return torch.ones_like(values)

    def settled(self, before: Tensor, after: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """See `Rule`: scaled to what came in. Their second such factor is one for want of signs."""
        factor = total([before], 2) / total(after, 2)
        return tuple(part * factor for part in after)

    def weighting(self, seen: Attended) -> AttentionBack:
        """See `Rule`. Raises UserError: the released codes know no recurrent unit."""
        raise UserError("the rules voita-2019 and voita-2021 know no recurrent decoder: leave them out of lrp.rules.")

    def activation(self, sums: Tensor, hidden: Tensor) -> Back:
        """See `heads.analysis.lrp.rules.Rule`."""
        return unchanged


@dataclass(frozen=True, slots=True)
class Voita2019(Relevances):
    """Relevance over a sum of inputs + eps through weights cut at eps from below, inputs of both signs in one sum.

    So denominators may be of any sign and near zero; what comes out is made positive and scaled back to what came in,
    over all neurons, heads and positions of the operation. Biases take no part. A layer norm passes relevance on as it
    is. Sums and attentions are shared in the ratio of contributions, an attention by its derivatives at queries, keys
    and values with eps added to each.
    """

    eps: float = 1e-7

    def top(self, weight: Tensor, bias: Tensor, states: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """See `heads.analysis.lrp.rules.Rule`."""
        contributions = (states + self.eps) * weight.clamp(min=self.eps)
        received = (contributions / contributions.sum(-1, keepdim=True)).abs()
        return received / (received.sum(-1, keepdim=True) + self.eps), torch.zeros_like(logits)

    def linear(self, layer: Linear, inputs: Tensor, outputs: Tensor) -> Back:
        """See `heads.analysis.lrp.rules.Rule`."""
        raising, moved = layer.weight.clamp(min=self.eps), inputs + self.eps
        sums = moved @ raising.T

        def back(relevance: Tensor, account: Account) -> Tensor:
            """The relevance of the input, by that of the output."""
            received = first(moved, relevance) * ((relevance / first(sums, relevance)) @ raising)
            return self._cropped([received], relevance, account)[0]

        return back

    def norm(self, norm: nn.Module, inputs: Tensor) -> Back:
        """See `heads.analysis.lrp.rules.Rule`."""
        return unchanged

    def add(self, stream: Tensor, change: Tensor) -> Fork:
        """See `heads.analysis.lrp.rules.Rule`."""

        def back(relevance: Tensor, account: Account) -> tuple[Tensor, Tensor]:
            """The relevance of both inputs, by that of the output."""
            moved = [first(part, relevance) + self.eps for part in (stream, change)]
            per_unit = relevance / (moved[0] + moved[1])
            at_stream, at_change = self._cropped([part * per_unit for part in moved], relevance, account)
            return at_stream, at_change

        return back

    def attention(self, seen: Attended) -> AttentionBack:
        """See `heads.analysis.lrp.rules.Rule`."""
        moved = self._moved(seen)

        def back(relevance: Tensor, account: Account) -> AtAttention:
            """The relevance at each part of attention, by that of the output."""
            part = moved.part(relevance)
            per_unit = relevance / part.outputs.transpose(1, 2)[:, None]
            _, at_scores = through_weights(part, per_unit)
            per_input = (at_values(part, per_unit), *at_keys_and_queries(part, at_scores))
            inputs = (value.transpose(1, 2)[:, None] for value in (part.values, part.keys, part.queries))
            received = [one * per for one, per in zip(inputs, per_input, strict=True)]
            return AtAttention(*self._cropped(received, relevance, account))

        return back

    def _cropped(self, received: Sequence[Tensor], relevance: Tensor, account: Account) -> list[Tensor]:
        return rescaled([part.abs() for part in received], relevance, whole(account), self.eps)

    def _moved(self, seen: Attended) -> Attended:
        """The attention that queries, keys and values make with eps added; what was masked stays so."""
        queries, keys, values = (part + self.eps for part in (seen.queries, seen.keys, seen.values))
        further = queries @ keys.transpose(-1, -2) * seen.scale - seen.scores
        weights = seen.weights * further.exp()
        weights = weights / weights.sum(-1, keepdim=True)
        return Attended(queries, keys, values, weights, weights @ values, seen.own)


@dataclass(frozen=True, slots=True)
class Voita2021(Relevances):
    """A half to what raised an output and a half to what lowered it, in the ratio of contributions, with biases in.

    Each of the D inputs of a map has a D-th of the bias added to its contribution, so that neurons of value zero and
    closed ReLUs get relevance; a layer norm counts by its whole derivative, that of its variance included. Where all
    contributions have one sign, only that side's half is handed on, and the rescaling makes up for it: at each position
    (each head, for an attention) and then over all positions of the sentence.
    """

    eps: float = 1e-5

    def top(self, weight: Tensor, bias: Tensor, states: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """See `heads.analysis.lrp.rules.Rule`."""
        contributions = weight * states + bias[:, :, None] / states.shape[-1]
        received = self._transitions(contributions)
        for _ in range(2):
            received = received / (received.sum(-1, keepdim=True) + self.eps)
        return received, torch.zeros_like(logits)

    def linear(self, layer: Linear, inputs: Tensor, outputs: Tensor) -> Back:
        """See `heads.analysis.lrp.rules.Rule`."""
        weight, bias = layer.weight, layer.bias
        if bias is None:
            return self._through_signs(matrix(weight), inputs)
        spread = bias[:, None] / inputs.shape[-1]
        return self._through_contributions(lambda row: spread + weight * row[:, None], inputs)

    def norm(self, norm: nn.Module, inputs: Tensor) -> Back:
        """See `heads.analysis.lrp.rules.Rule`."""
        if not isinstance(norm, nn.LayerNorm):
            return unchanged
        return self._through_contributions(lambda row: contributions_to_norm(norm, row), inputs)

    def add(self, stream: Tensor, change: Tensor) -> Fork:
        """See `heads.analysis.lrp.rules.Rule`."""
        per_unit = self._halves(stream.clamp(min=0) + change.clamp(min=0), stream.clamp(max=0) + change.clamp(max=0))

        def back(relevance: Tensor, account: Account) -> tuple[Tensor, Tensor]:
            """The relevance of both inputs, by that of the output."""
            up, down = (relevance * first(part, relevance) for part in per_unit)
            parts = (first(part, relevance) for part in (stream, change))
            received = [part.clamp(min=0) * up + part.clamp(max=0) * down for part in parts]
            received = rescaled(received, relevance, 3, self.eps)
            at_stream, at_change = (rescaled([part], part, whole(account), self.eps)[0] for part in received)
            return at_stream, at_change

        return back

    def attention(self, seen: Attended) -> AttentionBack:
        """See `heads.analysis.lrp.rules.Rule`."""
        softmax = ThroughSoftmax(seen)
        raised = softmax.raised + seen.weights @ seen.values.clamp(min=0)
        lowered = softmax.lowered + seen.weights @ seen.values.clamp(max=0)
        per_unit = [part.transpose(1, 2) for part in self._halves(raised, lowered)]

        def back(relevance: Tensor, account: Account) -> AtAttention:
            """The relevance at each part of attention, by that of the output."""
            part = seen.part(relevance)
            up, down = (relevance * first(half, relevance) for half in per_unit)
            values, keys, queries = (x.transpose(1, 2)[:, None] for x in (part.values, part.keys, part.queries))
            at_keys, at_queries = softmax.at_keys_and_queries(up, down)
            at = [values.clamp(min=0) * at_values(part, up) + values.clamp(max=0) * at_values(part, down)]
            at += [keys * at_keys, queries * at_queries]
            # [B, G, H, positions, E], so that each head is scaled by itself.
            at = rescaled([one.transpose(2, 3) for one in at], relevance.transpose(2, 3), 3, self.eps)
            return AtAttention(*rescaled([one.transpose(2, 3) for one in at], relevance, whole(account), self.eps))

        return back

    def _halves(self, raised: Tensor, lowered: Tensor) -> tuple[Tensor, Tensor]:
        """Relevance per unit of raising and of lowering contributions that relevance 1 becomes."""
        return 0.5 / (raised + self.eps), 0.5 / (lowered - self.eps)

    def _transitions(self, contributions: Tensor) -> Tensor:
        """What inputs get, unscaled, of relevance 1 of each output [..., V], from contributions [..., V, U]."""
        raised = contributions.clamp(min=0).sum(-1, keepdim=True)
        up, down = self._halves(raised, contributions.sum(-1, keepdim=True) - raised)
        return contributions * torch.where(contributions > 0, up, down)

    def _scaled(self, received: Tensor, relevance: Tensor, account: Account) -> Tensor:
        """Each position, then all of them."""
        (received,) = rescaled([received], relevance, 3, self.eps)
        return rescaled([received], relevance, whole(account), self.eps)[0]

    def _through_contributions(self, contributions: Callable[[Tensor], Tensor], inputs: Tensor) -> Back:
        """By the matrices [B, V, U] that `contributions` makes of inputs [B, U], one position at a time for room."""

        def back(relevance: Tensor, account: Account) -> Tensor:
            """The relevance of the input, by that of the output."""
            rows = inputs[: len(relevance), : relevance.shape[2]].unbind(1)
            received = [
                outputs @ self._transitions(contributions(row))
                for row, outputs in zip(rows, relevance.unbind(2), strict=True)
            ]
            return self._scaled(torch.stack(received, 2), relevance, account)

        return back

    def _through_signs(self, signs: SplitMap, inputs: Tensor) -> Back:
        """The same for a map without a bias, whose contributions have the sign of weight times input."""
        per_unit = self._halves(*signs.contributions(inputs))

        def back(relevance: Tensor, account: Account) -> Tensor:
            """The relevance of the input, by that of the output."""
            up, down = (relevance * first(part, relevance) for part in per_unit)
            part = first(inputs, relevance)
            return self._scaled(part * signs.back(part, up, down), relevance, account)

        return back


def contributions_to_norm(norm: nn.LayerNorm, inputs: Tensor) -> Tensor:
    """What inputs [B, D] of a layer norm add to each output, [B, D, D], by the released code's derivative.

    It leaves the norm's own epsilon out of the deviation and has it in the derivative of the variance.
    """
    width = inputs.shape[-1]
    centred = inputs - inputs.mean(-1, keepdim=True)
    variance = centred.square().mean(-1)[:, None, None]
    centring = torch.eye(width).to(inputs) - 1 / width
    moving = centred[:, :, None] * centred[:, None] / width * (variance + norm.eps) ** -1.5
    slopes = norm.weight[:, None] * (centring * variance**-0.5 - moving)
    return norm.bias[:, None] / width + slopes * inputs[:, None]

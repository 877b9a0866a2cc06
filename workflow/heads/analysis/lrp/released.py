"""The rule of the code that Voita et al. released in 2019: voita-2019.

Facts read in github.com/lena-voita/the-story-of-heads, commit 3b5734d (June 2019). It is not the paper's plain ratio.
Reproduced: the initial relevance is 1, not the logit; what the code takes as one operation, so that queries, keys and
values of self-attention, and keys and values of cross-attention, are one linear map; cropping to absolute values and
rescaling after each operation; the treatment of clipped weights and of biases; the constants. Its later versions serve
another paper (Voita et al. 2021, Analyzing the Source and Target Contributions) and are not reproduced.

Not reproduced: single precision; rescaling a batch as a whole (here each sentence and step by itself, as if given to
the authors' code one at a time). Activations other than a ReLU are treated here as those of feed-forward layers. The
release has no script that shows where LRP starts or is read off: both are as in the paper, at the largest logit and the
head's outputs.

Attention weights are not neurons: an attention is one operation on queries, keys and values, by its derivatives.
Relevance itself is carried, not a multiplier: it is nowhere negative, and neurons of value zero get some. Rescaling
keeps its sum up to the constant `eps`, which takes about that much from each position or operation, so that a balanced
account says nothing about the shares.

Shape letters as in `heads.analysis.lrp.rules`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from heads.analysis.lrp.rules import Account, AtAttention, Attended, AttentionBack, Back, Fork, Rule, first, unchanged
from heads.base.files import UserError


def total(parts: Sequence[Tensor], axis: int) -> Tensor:
    """The sum of all parts over the axes from `axis` on, as a tensor [..., 1, 1, 1] of their common rank."""
    return torch.stack([part.sum(tuple(range(axis, part.ndim)), keepdim=True) for part in parts]).sum(0)


@dataclass(frozen=True, slots=True)
class Voita2019(Rule):
    """Relevance over a sum of inputs + eps through weights clipped at eps from below, both signs in one sum.

    So denominators may have any sign and be near zero; the result is made positive and scaled back to the incoming
    relevance, over all neurons, heads and positions of the operation. Biases take no part. A layer norm passes
    relevance on unchanged. Sums and attentions distribute relevance in the ratio of contributions, an attention by its
    derivatives at queries, keys and values with eps added to each.
    """

    eps: float = 1e-7
    through_softmax: bool = field(default=True, init=False)
    conservation = "rescaled"

    def relevance_per_unit(self, values: Tensor) -> Tensor:
        """See `Rule`."""
        return torch.ones_like(values)

    def rescaled(self, before: Tensor, after: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """See `Rule`: scaled to the incoming relevance. The code's second such factor is one, as none is negative."""
        factor = total([before], 2) / total(after, 2)
        return tuple(part * factor for part in after)

    def weighting(self, seen: Attended) -> AttentionBack:
        """See `Rule`. Raises UserError: the released code has no recurrent unit."""
        raise UserError("the rule voita-2019 does not support recurrent decoders: remove it from lrp.rules.")

    def activation(self, sums: Tensor, hidden: Tensor) -> Back:
        """See `Rule`."""
        return unchanged

    def top(self, weight: Tensor, bias: Tensor, states: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """See `Rule`."""
        contributions = (states + self.eps) * weight.clamp(min=self.eps)
        received = (contributions / contributions.sum(-1, keepdim=True)).abs()
        return received / (received.sum(-1, keepdim=True) + self.eps), torch.zeros_like(logits)

    def linear(self, weight: Tensor, bias: Tensor | None, inputs: Tensor, outputs: Tensor) -> Back:
        """See `Rule`."""
        raising, moved = weight.clamp(min=self.eps), inputs + self.eps
        sums = moved @ raising.T

        def back(relevance: Tensor, account: Account) -> Tensor:
            """The relevance of the input, from that of the output."""
            received = first(moved, relevance) * ((relevance / first(sums, relevance)) @ raising)
            return self._cropped([received], relevance, account)[0]

        return back

    def norm(self, norm: nn.LayerNorm, inputs: Tensor) -> Back:
        """See `Rule`."""
        return unchanged

    def add(self, stream: Tensor, change: Tensor) -> Fork:
        """See `Rule`."""

        def back(relevance: Tensor, account: Account) -> tuple[Tensor, Tensor]:
            """The relevance of both inputs, from that of the output."""
            moved = [first(part, relevance) + self.eps for part in (stream, change)]
            per_unit = relevance / (moved[0] + moved[1])
            at_stream, at_change = self._cropped([part * per_unit for part in moved], relevance, account)
            return at_stream, at_change

        return back

    def attention(self, seen: Attended) -> AttentionBack:
        """See `Rule`."""
        moved = self._moved(seen)

        def back(relevance: Tensor, account: Account) -> AtAttention:
            """The relevance at each part of attention, from that of the output."""
            part = moved.part(relevance)
            per_unit = relevance / part.outputs.transpose(1, 2)[:, None]
            _, at_scores = part.through_weights(per_unit)
            per_input = (part.at_values(per_unit), *part.at_keys_and_queries(at_scores))
            inputs = (value.transpose(1, 2)[:, None] for value in (part.values, part.keys, part.queries))
            received = [one * per for one, per in zip(inputs, per_input, strict=True)]
            return AtAttention(*self._cropped(received, relevance, account))

        return back

    def _cropped(self, received: Sequence[Tensor], relevance: Tensor, account: Account) -> list[Tensor]:
        """The absolute parts, scaled to the sum of `relevance` [B, G, Q, ...] over each step, less about eps."""
        axis, parts = 3 if account.apart else 2, [part.abs() for part in received]
        factor = total([relevance], axis) / (total(parts, axis) + self.eps)
        return [part * factor for part in parts]

    def _moved(self, seen: Attended) -> Attended:
        """The attention with eps added to queries, keys and values; what was masked stays masked."""
        queries, keys, values = (part + self.eps for part in (seen.queries, seen.keys, seen.values))
        further = queries @ keys.transpose(-1, -2) * seen.scale - seen.scores
        weights = seen.weights * further.exp()
        weights = weights / weights.sum(-1, keepdim=True)
        return Attended(queries, keys, values, weights, weights @ values, seen.own, seen.scaled)

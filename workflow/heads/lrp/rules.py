"""How one operation shares relevance out among its inputs. A rule is one object: here the paper's plain ratio.

The relevance R of a neuron of value x is carried as its multiplier R / x. Then a map without bias hands multipliers on
by its transposed weights alone, because the plain ratio's denominator is the neuron's own value; a residual sum gives
both its summands the multiplier of the sum; and a value of zero needs no care. Only a bias makes a division necessary.

Letters of shapes: B batch, G generation step, Q position, D width of whatever is meant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Back = Callable[[Tensor], Tensor]
"""From multipliers [B, G, Q, D] of an operation's outputs to those of its inputs, for all that was traced or only for
the first sentences and positions of it."""


def unchanged(multiplier: Tensor) -> Tensor:
    """The way back through nothing."""
    return multiplier


def scaled(multiplier: Tensor, scale: Tensor) -> Tensor:
    """Multipliers [B, G, Q, D] times a factor that is the same for all steps, of which [B, Q, D] is the first part."""
    return multiplier * scale[: len(multiplier), None, : multiplier.shape[2]]


def stabilised(denominator: Tensor, stabiliser: float) -> Tensor:
    """The denominator moved away from zero by `stabiliser` in the direction of its sign, upwards at zero."""
    return torch.where(denominator < 0, denominator - stabiliser, denominator + stabiliser)


@dataclass(frozen=True, slots=True)
class PlainRatio:
    """The paper's rule (App. A.2): w(u <- v) = W_uv u / sum over u' of W_u'v u', for every input u of an output v.

    A bias takes no relevance: the denominator leaves it out, so that relevance is conserved. Layer norm counts as
    linear, its standard deviation a constant. Attention counts as linear in its values, its weights constants. A ReLU
    passes relevance on unchanged.
    """

    stabiliser: float

    def linear(self, layer: nn.Linear, inputs: Tensor) -> tuple[Tensor, Back]:
        """Outputs of a linear layer for `inputs` [B, Q, D], and the way back."""
        sums = F.linear(inputs, layer.weight)
        if layer.bias is None:
            return sums, lambda multiplier: multiplier @ layer.weight
        outputs = sums + layer.bias
        scale = outputs / stabilised(sums, self.stabiliser)
        return outputs, lambda multiplier: scaled(multiplier, scale) @ layer.weight

    def relu_of_linear(self, layer: nn.Linear, inputs: Tensor) -> tuple[Tensor, Back]:
        """Outputs of a linear layer and the ReLU after it, and the way back; closed neurons have nothing to share."""
        sums = F.linear(inputs, layer.weight)
        outputs = (sums + layer.bias).relu()
        scale = outputs / stabilised(sums, self.stabiliser)
        return outputs, lambda multiplier: scaled(multiplier, scale) @ layer.weight

    def norm(self, norm: nn.Module, inputs: Tensor) -> Back:
        """The way back through a layer norm (or the identity in its place) that was given `inputs` [B, Q, D]."""
        if not isinstance(norm, nn.LayerNorm):
            return unchanged
        centred = inputs - inputs.mean(-1, keepdim=True)
        slope = norm.weight / (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt()
        sums = centred * slope
        scale = slope * (sums + norm.bias) / stabilised(sums, self.stabiliser)

        def back(multiplier: Tensor) -> Tensor:
            multiplier = scaled(multiplier, scale)
            return multiplier - multiplier.mean(-1, keepdim=True)

        return back

    def attention(self, weights: Tensor, multiplier: Tensor) -> Tensor:
        """From multipliers [B, G, Q, H, E] of head outputs to those of values [B, G, K, H, E]; weights [B, H, Q, K]."""
        return torch.einsum("bhqk,bgqhe->bgkhe", weights, multiplier)

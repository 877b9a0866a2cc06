"""How far a model's distributions are from another model's, in chunks of tokens, with its own gradient.

Fine-tuning towards all probabilities that a larger model gives, and not only its answers, is the distillation of Hinton
et al. (2015). N tokens, D width, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from heads.model.encoder import TiedLinear
from heads.model.linear import Linear, multiplied, weight_gradient
from heads.training.cross_entropy import CHUNK, LEAST_TOKENS

Projection = Linear | TiedLinear


def divergence(states: Tensor, projection: Projection, wanted: Tensor, wanted_projection: Projection) -> Tensor:
    """Kullback-Leibler divergence [] in nats of the wanted distributions from a model's own, summed over tokens.

    states [N, D] are projected onto the vocabulary by `projection`, the `wanted` ones [N, D'] by `wanted_projection`,
    through which no gradient goes.
    """
    own, other = (projection.weight, projection.bias), (wanted_projection.weight, wanted_projection.bias)
    found: Tensor = _Divergence.apply(states.float(), *own, wanted.detach().float(), *(part.detach() for part in other))
    return found


class _Divergence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, wanted: Tensor, by_weight: Tensor, by_bias: Tensor
    ) -> Tensor:
        """The summed divergence; its gradients are computed at the same time."""
        rows = max(LEAST_TOKENS, CHUNK[states.device.type] // len(weight))
        of_states, of_weight, of_bias = torch.empty_like(states), torch.zeros_like(weight), torch.zeros_like(bias)
        total = weight.new_zeros(())
        for first in range(0, len(states), rows):
            part = states[first : first + rows]
            own = multiplied(part, weight, bias).log_softmax(-1)
            other = multiplied(wanted[first : first + rows], by_weight, by_bias).log_softmax(-1)
            likely = other.exp()
            total += torch.vdot(likely.flatten(), other.sub_(own).flatten())
            slopes = own.exp_().sub_(likely)
            of_states[first : first + rows] = multiplied(slopes, weight.T)
            if ctx.needs_input_grad[1]:
                of_weight += weight_gradient(slopes, part)
            of_bias += slopes.sum(0)
        ctx.save_for_backward(of_states, of_weight, of_bias)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients that were computed with the divergence."""
        return (*(saved * grad for saved in ctx.saved_tensors), None, None, None)

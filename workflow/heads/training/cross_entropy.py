"""Label-smoothed cross-entropy of a projection onto the vocabulary, in chunks of tokens, with its own gradient.

The logits of a whole batch are the largest tensors of an update, and allocating them costs more than computing them.
Here a few rows of logits at a time are computed, turned into their gradient, and discarded.
N tokens, D width, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from heads.model.linear import ROWS, compiled_by_size, filled, multiplied, weight_gradient

CHUNK = {"cpu": 2**20, "cuda": 2**28}
"""Number of logits held at once, by device type: what fits into a core's cache, or fills a GPU."""
LEAST_TOKENS = 256
"""Minimum of tokens at once: each part is added to the matrix's gradient, which grows with the vocabulary."""


def smoothed_cross_entropy(
    states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float, dtype: torch.dtype
) -> Tensor:
    """Cross-entropy in nats, summed over tokens; a share `smoothing` of each target is spread over all subwords.

    states [N, D] are projected by weight [V, D] and bias [V]; targets [N] are ids. Logits and their gradient are in
    `dtype`, sums of them are in the precision of the weights.
    """
    found: Tensor = _SmoothedCrossEntropy.apply(states, weight, bias, targets, smoothing, dtype)
    return found


class _SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float, dtype: torch.dtype
    ) -> Tensor:
        """The summed loss; its gradients are computed at the same time."""
        few_sizes = compiled_by_size(states.device, dtype)
        multiple = ROWS if few_sizes else 1
        rows = max(LEAST_TOKENS, CHUNK[states.device.type] // len(weight) // multiple * multiple)
        evenly = smoothing / len(weight)
        inputs = filled(states, dtype) if few_sizes else states.to(dtype)
        low, low_bias = weight.to(dtype), bias.to(dtype)
        of_states, of_weight, of_bias = torch.empty_like(inputs), torch.zeros_like(weight), torch.zeros_like(bias)
        total = weight.new_zeros(())
        for first in range(0, len(states), rows):
            part, wanted = inputs[first : first + rows], targets[first : first + rows, None]
            logits = multiplied(part, low, low_bias)
            slopes = logits.softmax(-1)
            # The rows that fill up the last part are zeros, and their results are left out.
            logits, slope = logits[: len(wanted)], slopes[: len(wanted)]
            # From the likeliest subword, whose probability of at least 1 / V has a finite logarithm.
            log_sums = logits.amax(-1).to(weight.dtype) - slope.amax(-1).to(weight.dtype).log()
            total += log_sums.sum() - (1 - smoothing) * logits.gather(1, wanted).to(weight.dtype).sum()
            # By flat index: with two dimensions, scatter_add_ copies the whole tensor on a CPU.
            places = torch.arange(len(wanted), device=wanted.device) * len(weight) + wanted[:, 0]
            slope.view(-1).index_add_(0, places, slope.new_full((), smoothing - 1).expand_as(places))
            of_states[first : first + rows] = multiplied(slopes, low.T)
            if ctx.needs_input_grad[1]:
                of_weight += weight_gradient(slopes, part)
            of_bias += slope.sum(0)  # in the precision of slopes, as for the weights: any other copies them
        # The part that is equal for all subwords needs no logits.
        together = inputs.sum(0, dtype=weight.dtype)
        total -= evenly * (weight.sum(0) @ together + len(states) * bias.sum())
        of_weight -= evenly * together
        of_bias -= evenly * len(states)
        ctx.save_for_backward(of_states[: len(states)].to(states.dtype) - evenly * weight.sum(0), of_weight, of_bias)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients that were computed with the loss."""
        return (*(saved * grad for saved in ctx.saved_tensors), None, None, None)

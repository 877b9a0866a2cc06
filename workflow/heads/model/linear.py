"""The linear map of the project, quicker than torch's where nothing is differentiated, and in bf16 on a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def by_intel(features: Mapping[str, Any]) -> bool:
    """Whether a processor of these features, as torch names them, is one of Intel's."""
    return str(features.get("cpu_name", "")).startswith("Intel")


def onednn_gains(features: Mapping[str, Any]) -> bool:
    """Whether oneDNN is there and multiplies quicker than MKL on a processor of these features.

    On some of AMD's MKL leaves half of the arithmetic unused, on others it is a tenth slower. On Intel's it takes four
    fifths of oneDNN's time where rows are few, as in a search, and a sixth where there is one.
    """
    there = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return there and not by_intel(features)


ONEDNN = onednn_gains(torch.cpu.get_capabilities())
LEAST_PRODUCTS = 2**22
"""How many pairs of numbers are multiplied at least in what oneDNN is given: it takes 20 microseconds to begin."""
ROWS = 64
"""What the rows of a product in bf16 on a CPU are filled up to a multiple of."""


def linear(states: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """torch's linear map; on a CPU, in float32 and in inference mode, oneDNN multiplies where that is quicker.

    The result is the same up to rounding.
    """
    # bf16 and oneDNN take no matrix without rows or columns, which a layer that lost all its heads has.
    if states.device.type != "cpu" or not weight.numel() or not states.numel():
        return F.linear(states, weight, bias)
    if torch.is_autocast_enabled("cpu"):
        inexact: Tensor = _Inexact.apply(states, weight, bias)
        return inexact
    exact = states.dtype == weight.dtype == torch.float32
    # How many products there are is asked last: nobody knows while a graph is exported, which is not in inference mode.
    if ONEDNN and exact and torch.is_inference_mode_enabled() and states.numel() * len(weight) >= LEAST_PRODUCTS:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], "")
        return product
    return F.linear(states, weight, bias)


class _Inexact(torch.autograd.Function):
    """A linear map whose products are in bf16, of few different numbers of rows.

    oneDNN compiles each product for its exact sizes and keeps the last thousand, so that batches of ever new sizes cost
    a gigabyte and a tenth of an update.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """[..., D] to [..., outputs] in bf16."""
        inputs, low = filled(states), weight.to(torch.bfloat16)
        ctx.save_for_backward(inputs, low)
        ctx.states_dtype = states.dtype
        sums = inputs @ low.T if bias is None else torch.addmm(bias.to(torch.bfloat16), inputs, low.T)
        shape = states.shape[:-1]
        return sums[: shape.numel()].view(*shape, len(low))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The same products the other way."""
        inputs, low = ctx.saved_tensors
        of_states, of_weight, of_bias = ctx.needs_input_grad
        slopes, shape = filled(grad), grad.shape[:-1]
        return (
            (slopes @ low)[: shape.numel()].view(*shape, -1).to(ctx.states_dtype) if of_states else None,
            (slopes.T @ inputs).float() if of_weight else None,
            slopes.sum(0).float() if of_bias else None,
        )


def filled(states: Tensor) -> Tensor:
    """States [..., D] as rows in bf16 [N, D], N rounded up by rows of zeros."""
    rows, width = states.shape[:-1].numel(), states.shape[-1]
    total = -(-rows // ROWS) * ROWS
    more = torch.empty(total, width, dtype=torch.bfloat16)
    more[:rows].view(states.shape).copy_(states)
    more[rows:] = 0
    return more


class Linear(nn.Linear):
    """A layer of `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        """[..., D] to [..., outputs]."""
        return linear(input, self.weight, self.bias)

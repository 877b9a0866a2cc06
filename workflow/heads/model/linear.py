"""A linear map that is faster than torch's on a CPU in inference mode and in bf16."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def by_intel(features: Mapping[str, Any]) -> bool:
    """Whether a processor with these features, as torch names them, is made by Intel."""
    return str(features.get("cpu_name", "")).startswith("Intel")


def onednn_gains(features: Mapping[str, Any]) -> bool:
    """Whether oneDNN is available and multiplies faster than MKL on a processor with these features.

    On some AMD processors MKL leaves half of the arithmetic units unused, on others it is a tenth slower. On Intel
    processors it takes four fifths of oneDNN's time for few rows, as in beam search, and a sixth for one row.
    """
    there = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return there and not by_intel(features)


ONEDNN = onednn_gains(torch.cpu.get_capabilities())
LEAST_PRODUCTS = 2**22
"""Smallest number of multiplications in a product given to oneDNN, which takes 20 microseconds to start."""
ROWS = 64
"""The number of rows of a bf16 product on a CPU is rounded up to a multiple of this."""


def linear(states: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """torch's linear map; on a CPU, in float32 and in inference mode, computed by oneDNN if that is faster.

    The result is the same up to rounding.
    """
    # bf16 and oneDNN accept no matrix without rows or columns, which a layer without heads has.
    if states.device.type != "cpu" or not weight.numel() or not states.numel():
        return F.linear(states, weight, bias)
    if torch.is_autocast_enabled("cpu"):
        inexact: Tensor = _Inexact.apply(states, weight, bias)
        return inexact
    exact = states.dtype == weight.dtype == torch.float32
    # The size is checked last: it is unknown while a graph is exported, which does not use inference mode.
    if ONEDNN and exact and torch.is_inference_mode_enabled() and states.numel() * len(weight) >= LEAST_PRODUCTS:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], "")
        return product
    return F.linear(states, weight, bias)


class _Inexact(torch.autograd.Function):
    """A linear map with products in bf16, whose numbers of rows are rounded up to a few different values.

    oneDNN compiles each product for its exact sizes and caches the last thousand, so batches of ever new sizes would
    cost a gigabyte and a tenth of an update.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Map [..., D] to [..., outputs] in bf16."""
        inputs, low = filled(states), weight.to(torch.bfloat16)
        ctx.save_for_backward(inputs, low)
        ctx.states_dtype = states.dtype
        sums = inputs @ low.T if bias is None else torch.addmm(bias.to(torch.bfloat16), inputs, low.T)
        shape = states.shape[:-1]
        return sums[: shape.numel()].view(*shape, len(low))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of states, weight and bias, by products in bf16."""
        inputs, low = ctx.saved_tensors
        of_states, of_weight, of_bias = ctx.needs_input_grad
        slopes, shape = filled(grad), grad.shape[:-1]
        return (
            (slopes @ low)[: shape.numel()].view(*shape, -1).to(ctx.states_dtype) if of_states else None,
            (slopes.T @ inputs).float() if of_weight else None,
            slopes.sum(0).float() if of_bias else None,
        )


def filled(states: Tensor) -> Tensor:
    """States [..., D] as rows in bf16 [N, D], with N rounded up by rows of zeros."""
    rows, width = states.shape[:-1].numel(), states.shape[-1]
    total = -(-rows // ROWS) * ROWS
    more = torch.empty(total, width, dtype=torch.bfloat16)
    more[:rows].view(states.shape).copy_(states)
    more[rows:] = 0
    return more


class Linear(nn.Linear):
    """A linear layer computed by `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        """Map [..., D] to [..., outputs]."""
        return linear(input, self.weight, self.bias)

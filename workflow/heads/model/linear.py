"""A linear map, and its gradients, that are faster than torch's on a CPU."""

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


def onednn_trains(features: Mapping[str, Any]) -> bool:
    """Whether oneDNN is also the faster one in a training, whose products have a thousand rows and new sizes each time.

    Without AVX-512, MKL uses all of an AMD processor: an update of the demo takes nine tenths of the time that it takes
    with oneDNN, while beam search, with its few rows, is a tenth faster by oneDNN.
    """
    return onednn_gains(features) and bool(features.get("avx512_f", False))


ONEDNN = onednn_gains(torch.cpu.get_capabilities())
ONEDNN_TRAINS = onednn_trains(torch.cpu.get_capabilities())
LEAST_PRODUCTS = 2**20
"""Smallest number of multiplications in a product given to oneDNN, which takes 10 to 20 microseconds to start."""
ROWS = 64
"""In training, the number of rows of a product by oneDNN is rounded up to a multiple of this."""


def linear(states: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """torch's linear map, up to rounding; on a CPU, in float32, computed by oneDNN if that is faster."""
    # bf16 and oneDNN accept no matrix without rows or columns, which a layer without heads has.
    if states.device.type != "cpu" or not weight.numel() or not states.numel():
        return F.linear(states, weight, bias)
    if torch.is_autocast_enabled("cpu"):
        inexact: Tensor = _ByOneDNN.apply(states, weight, bias, torch.bfloat16)
        return inexact
    # While a graph is exported, its sizes are unknown, and it must hold torch's own operations alone.
    if torch.compiler.is_compiling():
        return F.linear(states, weight, bias)
    if not torch.is_grad_enabled():
        return multiplied(states, weight, bias)
    if ONEDNN_TRAINS and faster_by_onednn(states, weight):
        exact: Tensor = _ByOneDNN.apply(states, weight, bias, torch.float32)
        return exact
    return F.linear(states, weight, bias)


def compiled_by_size(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether large products of this type are oneDNN's, which compiles each for its exact sizes."""
    return device.type == "cpu" and (dtype is torch.bfloat16 or (ONEDNN and dtype is torch.float32))


def faster_by_onednn(left: Tensor, right: Tensor) -> bool:
    """Whether the product of `left` [..., D] and `right` [M, D] transposed is faster by oneDNN than by MKL."""
    exact = left.device.type == "cpu" and left.dtype == right.dtype == torch.float32
    return ONEDNN and exact and left.numel() * len(right) >= LEAST_PRODUCTS


def multiplied(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """`left` [..., D] times `right` [M, D] transposed, plus `bias` [M], by the library that is faster: [..., M]."""
    if faster_by_onednn(left, right):
        product: Tensor = torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")
        return product
    return F.linear(left, right, bias)


def weight_gradient(slopes: Tensor, inputs: Tensor) -> Tensor:
    """The gradient [outputs, D] of a matrix that maps `inputs` [N, D] to outputs with gradient `slopes` [N, outputs].

    oneDNN is up to three times faster if the product has more columns than rows.
    """
    if faster_by_onednn(slopes.T, inputs.T) and slopes.shape[1] > inputs.shape[1]:
        return multiplied(inputs.T, slopes.T).T
    return multiplied(slopes.T, inputs.T)


class _ByOneDNN(torch.autograd.Function):
    """A linear map with products in one precision, whose numbers of rows are rounded up to a few different values.

    oneDNN compiles each product for its exact sizes and caches the last thousand, so batches of ever new sizes would
    cost a gigabyte and a tenth of an update, or half of the time of products in float32.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Map [..., D] to [..., outputs], in `dtype`."""
        inputs, low = filled(states, dtype), weight.to(dtype)
        ctx.save_for_backward(inputs, low)
        ctx.states_dtype = states.dtype
        sums = multiplied(inputs, low, None if bias is None else bias.to(dtype))
        shape = states.shape[:-1]
        return sums[: shape.numel()].view(*shape, len(low))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of states, weight and bias, by products in the same precision."""
        inputs, low = ctx.saved_tensors
        of_states, of_weight, of_bias, _ = ctx.needs_input_grad
        slopes, shape = filled(grad, low.dtype), grad.shape[:-1]
        return (
            multiplied(slopes, low.T)[: shape.numel()].view(*shape, -1).to(ctx.states_dtype) if of_states else None,
            weight_gradient(slopes, inputs).float() if of_weight else None,
            slopes.sum(0).float() if of_bias else None,
            None,
        )


def filled(states: Tensor, dtype: torch.dtype) -> Tensor:
    """States [..., D] as rows [N, D] in `dtype`, with N rounded up by rows of zeros."""
    rows, width = states.shape[:-1].numel(), states.shape[-1]
    total = -(-rows // ROWS) * ROWS
    more = torch.empty(total, width, dtype=dtype)
    more[:rows].view(states.shape).copy_(states)
    more[rows:] = 0
    return more


class Linear(nn.Linear):
    """A linear layer computed by `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        """Map [..., D] to [..., outputs]."""
        return linear(input, self.weight, self.bias)

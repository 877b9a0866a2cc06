"""The linear map of the project, quicker than torch's where nothing is differentiated."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def linear(states: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """torch's linear map; on a CPU, in float32 and in inference mode, oneDNN multiplies instead of MKL.

    On AMD's processors MKL leaves half of the arithmetic unused. The result is the same up to rounding.
    """
    plain = states.device.type == "cpu" and states.dtype == weight.dtype == torch.float32
    # oneDNN takes no matrix without rows or columns, which a layer that lost all its heads has.
    if ONEDNN and torch.is_inference_mode_enabled() and plain and weight.numel() and states.numel():
        product: Tensor = torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], "")
        return product
    return F.linear(states, weight, bias)


class Linear(nn.Linear):
    """A layer of `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        """[..., D] to [..., outputs]."""
        return linear(input, self.weight, self.bias)

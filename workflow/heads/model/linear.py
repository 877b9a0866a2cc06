"""The linear map of the project, quicker than torch's where nothing is differentiated."""

from __future__ import annotations

import torch
from torch import Tensor, nn

ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class Linear(nn.Linear):
    """torch's linear map; on a CPU, in float32 and in inference mode, oneDNN multiplies instead of MKL.

    On AMD's processors MKL leaves half of the arithmetic unused. The result is the same up to rounding.
    """

    def forward(self, input: Tensor) -> Tensor:
        """[..., D] to [..., outputs]."""
        plain = input.device.type == "cpu" and input.dtype == self.weight.dtype == torch.float32
        # oneDNN takes no matrix without rows or columns, which a layer that lost all its heads has.
        if ONEDNN and torch.is_inference_mode_enabled() and plain and self.weight.numel() and input.numel():
            product: Tensor = torch.ops.mkldnn._linear_pointwise(input, self.weight, self.bias, "none", [], "")
            return product
        return super().forward(input)

"""The feed-forward network of a layer (Vaswani et al. 2017, sec. 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch.nn.functional as F
from torch import Tensor, nn

from heads.model.dropout import drop
from heads.model.linear import Linear

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "silu": F.silu, "gelu": F.gelu}


class FeedForward(nn.Module):
    """Two linear maps with an activation between them: a ReLU unless the shape names another one."""

    def __init__(self, width: int, inner: int, dropout: float, activation: str = "relu") -> None:
        super().__init__()
        self.inner, self.outer, self.dropout = Linear(width, inner), Linear(inner, width), dropout
        self.activation = activation

    def activate(self, sums: Tensor) -> Tensor:
        """Apply the activation to the output of the first map, of any shape."""
        return ACTIVATIONS[self.activation](sums)

    def forward(self, states: Tensor) -> Tensor:
        """Map states [B, Q, D] to [B, Q, D]."""
        hidden = drop(self.activate(self.inner(states)), self.dropout, training=self.training)
        changed: Tensor = self.outer(hidden)
        return changed

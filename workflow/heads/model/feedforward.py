"""The feed-forward network of a layer, with one factor on every hidden unit.

Letters of shapes as in `heads.model.encoder`.
"""

from collections.abc import Callable, Mapping
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from heads.model.dropout import drop
from heads.model.linear import Linear

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
}


class FeedForward(nn.Module):
    """Two linear maps with an activation between them (Vaswani et al. 2017, sec. 3.3).

    If gated, what was activated is multiplied by a third map, `factor`, of the same states (Shazeer 2020).
    """

    def __init__(
        self,
        width: int,
        inner: int,
        dropout: float,
        activation: str = "relu",
        *,
        gated: bool = False,
        biases: bool = True,
    ) -> None:
        super().__init__()
        self.inner, self.outer = Linear(width, inner, bias=biases), Linear(inner, width, bias=biases)
        self.factor = Linear(width, inner, bias=biases) if gated else None
        self.dropout, self.activation = dropout, activation

    def activate(self, sums: Tensor) -> Tensor:
        """Apply the activation to the output of the first map, of any shape."""
        return ACTIVATIONS[self.activation](sums)

    def forward(self, states: Tensor, gate: Tensor | None = None) -> Tensor:
        """Map states [B, Q, D] to [B, Q, D]. gate: a factor on each hidden unit."""
        hidden = self.activate(self.inner(states))
        if self.factor is not None:
            hidden = hidden * self.factor(states)
        hidden = drop(hidden, self.dropout, training=self.training)
        if gate is not None:
            hidden = hidden * gate
        changed: Tensor = self.outer(hidden)
        return changed

"""The simpler simple recurrent unit (Kim et al. 2019, sec. 3.1), which Firefox's decoders have for self-attention.

f_t = sigmoid(W_f x_t + b_f) and c_t = f_t * c_{t-1} + (1 - f_t) * W x_t, with c_0 = 0; relu(c_t) is given out.
Letters of shapes: B batch, T target length, N hypotheses, D width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from heads.model.linear import Linear


class Ssru(nn.Module):
    """The unit between its norm and residual sum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.forget, self.candidate = Linear(width, width), Linear(width, width, bias=False)

    def gated(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Forget gates f and candidates W x of states [..., D]."""
        forget, candidate = self.forget(states), self.candidate(states)
        if candidate.dtype is torch.bfloat16:  # the products were; what is summed over a sentence is not
            forget, candidate = forget.float(), candidate.float()
        return forget.sigmoid(), candidate

    def forward(self, states: Tensor) -> Tensor:
        """All positions [B, T, D] at once, each from what is before it."""
        forget, candidate = self.gated(states)
        cells: Tensor = Scan.apply(forget, (1 - forget) * candidate)
        return cells.relu()

    def weights(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """The cells of states [B, T, D] as a weighting of candidates: weights [B, D, T, T], candidates [B, T, D].

        What is left at t of a candidate of s <= t: 1 - f_s, times every f since.
        """
        forget, candidate = self.gated(states)
        gates = forget.transpose(1, 2)
        weights = gates.new_zeros(*gates.shape, gates.shape[-1])
        for step in range(gates.shape[-1]):
            if step:
                weights[:, :, step] = gates[:, :, step, None] * weights[:, :, step - 1]
            weights[:, :, step, step] = 1 - gates[:, :, step]
        return weights, candidate

    def step(self, states: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """What is given out for the newest states [B, N, D], and the next cell [B, N, D]."""
        forget, candidate = self.gated(states)
        cell = forget * cell + (1 - forget) * candidate
        return cell.relu(), cell


class Scan(torch.autograd.Function):
    """c_t = f_t * c_{t-1} + a_t along T of [B, T, D], from c_0 = 0: one node of the graph, whatever T is."""

    @staticmethod
    def forward(ctx: Any, forget: Tensor, added: Tensor) -> Tensor:
        """The cells c [B, T, D]."""
        cells = added.clone()
        for step in range(1, cells.shape[1]):
            cells[:, step].addcmul_(forget[:, step], cells[:, step - 1])
        ctx.save_for_backward(forget, cells)
        return cells

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient of an added a_t is what c_t hands on: its own, and f_{t+1} times that of c_{t+1}."""
        forget, cells = ctx.saved_tensors
        added = gradients[0].clone()
        for step in range(added.shape[1] - 2, -1, -1):
            added[:, step].addcmul_(forget[:, step + 1], added[:, step + 1])
        forgotten = torch.zeros_like(added)
        torch.mul(added[:, 1:], cells[:, :-1], out=forgotten[:, 1:])
        return forgotten, added

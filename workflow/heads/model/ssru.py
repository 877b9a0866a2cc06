"""Simpler simple recurrent unit (Kim et al. 2019, sec. 3.1), which Firefox's decoders use for self-attention.

f_t = sigmoid(W_f x_t + b_f) and c_t = f_t * c_{t-1} + (1 - f_t) * W x_t, with c_0 = 0; the output is relu(c_t).
Letters of shapes: B batch, T target length, N hypotheses, D width.
"""

from typing import Any

import torch
from torch import Tensor, nn

from heads.model.linear import Linear


class Ssru(nn.Module):
    """The recurrent unit itself, without its norm and residual sum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.forget, self.candidate = Linear(width, width), Linear(width, width, bias=False)

    def gated(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Forget gates f and candidates W x of states [..., D]."""
        forget, candidate = self.forget(states), self.candidate(states)
        if candidate.dtype is torch.bfloat16:  # only the products are in bf16; sums over a sentence are not
            forget, candidate = forget.float(), candidate.float()
        return forget.sigmoid(), candidate

    def forward(self, states: Tensor) -> Tensor:
        """Outputs at all positions [B, T, D] at once, each from its own and earlier states."""
        forget, candidate = self.gated(states)
        cells: Tensor = Scan.apply(forget, (1 - forget) * candidate)
        return cells.relu()

    def weights(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """The cells of states [B, T, D] as weighted sums of candidates: weights [B, D, T, T], candidates [B, T, D].

        The weight at t of the candidate at s <= t is 1 - f_s times all later f up to f_t.
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
        """The output for the newest states [B, N, D], and the next cell [B, N, D]."""
        forget, candidate = self.gated(states)
        cell = forget * cell + (1 - forget) * candidate
        return cell.relu(), cell


class Scan(torch.autograd.Function):
    """c_t = f_t * c_{t-1} + a_t along T of [B, T, D], from c_0 = 0, as one node of the graph for any T."""

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
        """Gradients of f and a; that of a_t is the gradient of c_t plus f_{t+1} times the gradient of a_{t+1}."""
        forget, cells = ctx.saved_tensors
        added = gradients[0].clone()
        for step in range(added.shape[1] - 2, -1, -1):
            added[:, step].addcmul_(forget[:, step + 1], added[:, step + 1])
        forgotten = torch.zeros_like(added)
        torch.mul(added[:, 1:], cells[:, :-1], out=forgotten[:, 1:])
        return forgotten, added

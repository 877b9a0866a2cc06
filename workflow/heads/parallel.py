"""One training in several processes, each with a GPU of its own: started by torchrun or srun, which tell each its rank.

Every process holds the whole model and takes its share of an update's micro-batches; gradients are summed before each
optimiser takes the same step. So an update is of the same tokens and has the same result, up to rounding, however many
processes there are. Without a launcher there is one process and nothing of this does anything.

The gradients are summed here and not by torch's DistributedDataParallel, since that hooks into each backward pass. With
several micro-batches an update, gates whose graph all of them share and a penalty beside the loss, one sum at the end
is both simpler and less to send.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

Item = TypeVar("Item")

LONGEST_WAIT = timedelta(hours=2)
"""How long the others wait while the first process looks at the dev set and writes."""


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of one training, as one of them sees them."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this one evaluates, logs and writes."""
        return self.rank == 0

    def share(self, parts: Sequence[Item]) -> Sequence[Item]:
        """This one's part of the micro-batches of an update; may be none."""
        return parts[self.rank :: self.count]

    @torch.no_grad()
    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up the gradients of all processes, in one message."""
        if self.count == 1:
            return
        learning = [parameter for parameter in parameters if parameter.requires_grad]
        gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in learning]
        together = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(together)
        for parameter, part in zip(learning, together.split([g.numel() for g in gradients]), strict=True):
            parameter.grad = part.view_as(parameter).clone()

    def sum(self, value: Tensor) -> Tensor:
        """The sum of every process's value."""
        if self.count > 1:
            dist.all_reduce(value)
        return value

    def told(self, value: float) -> float:
        """The first process's value, in all of them."""
        if self.count == 1:
            return value
        holder = torch.tensor([value], dtype=torch.float64, device="cuda" if dist.get_backend() == "nccl" else "cpu")
        dist.broadcast(holder, 0)
        return float(holder)

    def leave(self) -> None:
        """Part from the others when all have come so far."""
        if self.count > 1:
            dist.barrier()
            dist.destroy_process_group()


def joined(device: torch.device) -> Processes:
    """The processes that a launcher started with this one; this one alone where there was none."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return Processes()
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=LONGEST_WAIT)
    return Processes(dist.get_rank(), count)

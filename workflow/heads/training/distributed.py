"""One training in several processes, each with its own GPU, started by torchrun or srun, which set the ranks.

With `--processes 4` a command starts them itself, by srun in a SLURM job of four tasks and by torchrun elsewhere.
Every process holds the whole model and takes its share of an update's micro-batches; gradients are summed before each
optimiser takes the same step. So the result is the same, up to rounding, for any number of processes.

torch's DistributedDataParallel sums in each backward pass. With several of them in an update, gates whose graph they
all share, and a penalty beside the loss, one sum at the end is simpler and sends less.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

Item = TypeVar("Item")

LONGEST_WAIT = timedelta(hours=2)
"""How long the other processes wait while the first one evaluates on the dev set and writes."""


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of one training, as seen by one of them."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this process is the one that evaluates, logs and writes."""
        return self.rank == 0

    def part_tokens(self, batch_tokens: int, most: int) -> int:
        """Tokens per micro-batch, at most `most`, such that all processes get equal shares of an update."""
        if self.count == 1:
            return most
        rounds = -(-batch_tokens // (most * self.count))
        return -(-batch_tokens // (rounds * self.count))

    def share(self, parts: Sequence[Item]) -> Sequence[Item]:
        """This process's share of the micro-batches of an update; may be empty."""
        return parts[self.rank :: self.count]

    @torch.no_grad()
    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Sum the gradients over all processes, in one message."""
        if self.count == 1:
            return
        learning = [parameter for parameter in parameters if parameter.requires_grad]
        gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in learning]
        together = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(together)
        for parameter, part in zip(learning, together.split([g.numel() for g in gradients]), strict=True):
            parameter.grad = part.view_as(parameter).clone()

    def sum(self, value: Tensor) -> Tensor:
        """The sum of `value` over all processes."""
        if self.count > 1:
            dist.all_reduce(value)
        return value

    def broadcast(self, value: float) -> float:
        """The first process's value, returned in all processes."""
        if self.count == 1:
            return value
        holder = torch.tensor([value], dtype=torch.float64)  # not on the GPU, as that would mean waiting for it
        dist.broadcast(holder, 0)
        return float(holder)

    def leave(self) -> None:
        """Wait until all processes get here, then leave their group."""
        if self.count > 1:
            dist.barrier()
            dist.destroy_process_group()


def launch(processes: int, threads: int) -> None:
    """Replace this process by a launcher of `processes` processes, unless it is one of them or there is only one.

    In a SLURM job of several tasks (`mpi: srun`), Snakemake runs the command in the batch script, not in a step.
    """
    in_step = "SLURM_STEP_ID" in os.environ
    if in_step and os.environ.get("SLURM_NTASKS") == str(processes):
        _from_srun()
    if processes == 1 or "RANK" in os.environ:
        return
    command = ["-m", "heads", *sys.argv[1:]]
    if "SLURM_JOB_ID" in os.environ and not in_step and shutil.which("srun"):
        each = ["--ntasks", str(processes), "--cpus-per-task", str(threads), "--kill-on-bad-exit=1"]
        command = ["srun", *each, sys.executable, *command]
    else:
        command = [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *(f"--nproc-per-node={processes}", *command),
        ]
    sys.stdout.flush()
    os.execvp(command[0], command)


def _from_srun() -> None:
    """Set torch's variables from srun's; the node of the first process is the one that runs the batch script."""
    environment = os.environ
    environment["RANK"], environment["WORLD_SIZE"] = environment["SLURM_PROCID"], environment["SLURM_NTASKS"]
    environment.setdefault("MASTER_ADDR", environment["SLURM_LAUNCH_NODE_IPADDR"])
    # Two jobs on one node must not use the same port.
    port = 20_000 + (int(environment["SLURM_JOB_ID"]) * 7 + int(environment["SLURM_STEP_ID"])) % 20_000
    environment.setdefault("MASTER_PORT", str(port))


def joined(device: torch.device) -> Processes:
    """Join the processes that a launcher started with this one; without a launcher, this one is alone."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return Processes()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=LONGEST_WAIT)
    return Processes(dist.get_rank(), count)

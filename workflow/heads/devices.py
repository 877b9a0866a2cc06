"""Where tensors live and how many threads work on them."""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from heads.files import UserError

POLL_SECONDS = 2.0


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags `--device` and `--threads`, shared by all commands that run a model."""
    parser.add_argument("--device", default="auto", help="auto (a free GPU when there is one), cpu, cuda or cuda:1")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads for torch")


def pick(arguments: argparse.Namespace) -> torch.device:
    """The device asked for, with the threads asked for; results on it repeat for the same seed.

    A GPU without a number is one that no other job on this machine has taken in the same way. What was picked is put
    into `arguments`, for the record.
    """
    torch.set_num_threads(arguments.threads)
    # Without it cuBLAS has no deterministic algorithms; read when CUDA starts.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    name = arguments.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"--device {name} was asked for, but torch sees no GPU: use --device cpu.")
    device = torch.device(f"cuda:{free_gpu()}" if name == "cuda" else name)
    arguments.device = f"{device} {torch.cuda.get_device_name(device)}" if device.type == "cuda" else str(device)
    return device


def free_gpu() -> int:
    """The number of a GPU that is free, waiting for one if need be; it stays taken until this process ends."""
    names = [str(torch.cuda.get_device_properties(number).uuid) for number in range(torch.cuda.device_count())]
    folder = Path(tempfile.gettempdir()) / f"heads-gpus-{os.getuid()}"
    told = False
    while (number := claim(names, folder)) is None:
        if not told:
            print(f"all {len(names)} GPUs are taken by other jobs: waiting for one", file=sys.stderr, flush=True)
            told = True
        time.sleep(POLL_SECONDS)
    return number


def claim(names: Sequence[str], folder: Path) -> int | None:
    """The place of the first name that no living process has claimed in `folder`; None when all are taken.

    The claim is a lock on a file, so that it dies with its owner, however that ends.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for place, name in enumerate(names):
        lock = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return place  # The lock's descriptor is left open on purpose: closing it would give the GPU back.
    return None

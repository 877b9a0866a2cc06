"""Where tensors live and how many threads work on them."""

from __future__ import annotations

import argparse
import os

import torch

from heads.files import UserError


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags `--device` and `--threads`, shared by all commands that run a model."""
    parser.add_argument("--device", default="auto", help="auto (a GPU when there is one), cpu, cuda or cuda:1")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads for torch")


def pick(arguments: argparse.Namespace) -> torch.device:
    """The device asked for, with the threads asked for; results on it repeat for the same seed."""
    torch.set_num_threads(arguments.threads)
    # Without it cuBLAS has no deterministic algorithms; read when CUDA starts.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    name = arguments.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"--device {name} was asked for, but torch sees no GPU: use --device cpu.")
    return torch.device(name)

"""Where tensors live and how many threads work on them."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from filelock import lock_descriptor

from heads.base.files import UserError
from heads.model.linear import by_intel

POLL_SECONDS = 2.0
LOCK_HOMES = (Path("/dev/shm"), Path("/tmp"))
"""Where GPUs are claimed, the first that can be written: the same for all jobs on a machine, as TMPDIR need not be."""
JOBS_A_GPU = "HEADS_JOBS_A_GPU"
"""The variable of the environment that says how many jobs may share a GPU, the same for all jobs; one without it."""
LENGTH_MULTIPLE = {"cpu": 1, "cuda": 8}
"""What lengths of training batches are rounded up to: a GPU is slow at odd sizes, and at each that it meets first."""


def pick(name: str, threads: int) -> torch.device:
    """The device asked for by its name (auto, cpu, cuda or cuda:1), with so many threads; results on it repeat.

    A GPU is one that no other job on this machine has taken in the same way; one that is asked for by its number is
    waited for.
    Raises UserError for a device or a number of threads that there is not.
    """
    if threads < 1:
        raise UserError(f"--threads {threads} cannot work: give 1 or more.")
    torch.set_num_threads(threads)
    # Without it cuBLAS has no deterministic algorithms; read when CUDA starts.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # torch.use_deterministic_algorithms sets the same and imports the compiler first, which takes a second.
    torch.set_deterministic_debug_mode("warn")
    # Else memory that is about to be written would be filled with NaN first.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    wanted = re.fullmatch(r"cpu|cuda(?::(?P<number>0|[1-9][0-9]*))?", name)
    if wanted is None:
        raise UserError(f"--device {name} is not known: use auto, cpu, cuda or cuda:1 with the number of a GPU.")
    if name != "cpu" and not torch.cuda.is_available():
        raise UserError(f"--device {name} was asked for, but torch sees no GPU: use --device cpu.")
    return torch.device("cpu" if name == "cpu" else f"cuda:{own_gpu(wanted['number'])}")


def pick_each(names: Sequence[str], threads: int) -> list[torch.device]:
    """The devices asked for, in their order; for `auto` alone the CPU, and a GPU where there is one.

    Raises UserError for a device that is named twice.
    """
    if list(names) == ["auto"]:
        names = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    if len(set(names)) < len(names):
        raise UserError(f"--device {' '.join(names)} names a device twice: name each once.")
    return [pick(name, threads) for name in names]


def label_of(*devices: torch.device) -> str:
    """What the record of a job says it worked on, such as `cpu` or `cuda:0` with the name of the GPU."""
    return ", ".join(
        f"{device} {torch.cuda.get_device_name(device)}" if device.type == "cuda" else str(device) for device in devices
    )


def own_gpu(number: str | None) -> int:
    """The number of a GPU that is free, or the one with this number, which stays taken until this process ends.

    Raises UserError when there is no such GPU, or when several processes of a training would wait for one another.
    """
    names = [str(torch.cuda.get_device_properties(place).uuid) for place in range(torch.cuda.device_count())]
    folder = lock_folder(LOCK_HOMES)
    if number is None:
        waiting = f"all {len(names)} GPUs are taken by other jobs: waiting for one"
        return taken(places_on(names), folder, waiting) % len(names)
    if int(number) >= len(names):
        raise UserError(f"--device cuda:{number} is not there: torch sees {len(names)} GPUs, counted from 0.")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UserError(f"--device cuda:{number} is one GPU, but each process needs its own: use --device cuda.")
    taken(places_on([names[int(number)]]), folder, f"GPU {number} is taken by another job: waiting for it")
    return int(number)


def places_on(names: Sequence[str]) -> list[str]:
    """Names of the places that jobs can take on GPUs, one on each GPU first, then a second one on each, and so on.

    Raises UserError when the number of jobs that may share a GPU is none.
    """
    jobs = os.environ.get(JOBS_A_GPU, "1")
    if re.fullmatch("[1-9][0-9]*", jobs) is None:
        raise UserError(f"{JOBS_A_GPU}={jobs} cannot work: give 1 or more.")
    return [*names, *(f"{name}.{job}" for job in range(2, int(jobs) + 1) for name in names)]


def lock_folder(homes: Sequence[Path]) -> Path:
    """Where this user's jobs on this machine claim GPUs: below the first of these folders that can be written."""
    home = next((home for home in homes if os.access(home, os.W_OK)), homes[-1])
    return home / f"heads-gpus-{os.getuid()}"


def taken(names: Sequence[str], folder: Path, waiting: str) -> int:
    """The place of the first name that could be claimed, waited for if need be, which is then reported once."""
    reported = False
    while (place := claim(names, folder)) is None:
        if not reported:
            print(waiting, file=sys.stderr, flush=True)
            reported = True
        time.sleep(POLL_SECONDS)
    return place


def claim(names: Sequence[str], folder: Path) -> int | None:
    """The place of the first name that no living process has claimed in `folder`; None when all are taken.

    The claim is a lock on a file, so that it dies with its owner, however that ends. Its descriptor is left open on
    purpose: filelock's own objects give it back when Python begins to shut down, seconds before the GPU is free.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for place, name in enumerate(names):
        lock = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        if lock_descriptor(lock, blocking=False):
            return place
        os.close(lock)
    return None


def products_dtype(precision: str, device: torch.device) -> torch.dtype:
    """In what numbers matrices are multiplied while training: bf16 where it is asked for and the processor gains by it.

    AMD's processors multiply AVX-512's bf16 quicker than fp32; Intel's do so with AMX alone, which a virtual machine
    may hide: without it a Xeon that has both reached 84 billion operations a second in bf16 and 160 in fp32.
    """
    features = torch.cpu.get_capabilities()
    by_amd = features.get("avx512_bf16", False) and not by_intel(features)
    gains = device.type != "cpu" or by_amd or features.get("amx_bf16", False)
    return torch.bfloat16 if precision == "bf16" and gains else torch.float32

"""Choose the device of a job and its number of threads."""

import os
import re
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from filelock import lock_descriptor

from heads.base.files import UserError
from heads.model.linear import by_intel

POLL_SECONDS = 2.0
LOCK_HOMES = (Path("/dev/shm"), Path("/tmp"))
"""Where GPUs are claimed: the first writable folder, the same for all jobs on a machine, unlike TMPDIR."""
GPU = "cuda"
"""The type of device that is not the CPU; tests put in its place one that needs no GPU."""
JOBS_A_GPU = "HEADS_JOBS_A_GPU"
"""Environment variable with the number of jobs that may share a GPU, the same for all jobs; 1 if it is not set."""
SUBWORDS_MULTIPLE = {"cpu": 1, "cuda": 64}
"""Numbers of subwords in training batches are rounded up to this multiple: a GPU is slow at odd and at new sizes."""


def pick(name: str, threads: int) -> torch.device:
    """The device with this name (auto, cpu, cuda or cuda:1), set up for `threads` threads and repeatable results.

    A GPU is one that no other job on this machine has claimed with this function; if none is free, or not the one given
    by number, this waits. Raises UserError for a device that does not exist or an invalid number of threads.
    """
    if threads < 1:
        raise UserError(f"--threads {threads} is not valid: give 1 or more.")
    torch.set_num_threads(threads)
    # cuBLAS needs this for deterministic algorithms; it is read when CUDA starts.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # torch.use_deterministic_algorithms does the same but first imports the compiler, which takes a second.
    torch.set_deterministic_debug_mode("warn")
    # Their gradients are repeatable only where nothing else is allowed, at the cost of speed. So a GPU's runs differ in
    # the last digits, as docs/cluster.md says, and torch need not say it in each of them.
    attentions = "(Flash Attention|Memory Efficient attention)"
    warnings.filterwarnings("ignore", f"{attentions} defaults to a non-deterministic algorithm")
    # cuDNN's attention makes a plan for every new shape, 11 ms a call, and nearly every batch has a new shape.
    torch.backends.cuda.enable_cudnn_sdp(enabled=False)
    # Otherwise memory that is about to be written would first be filled with NaN.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    wanted = re.fullmatch(r"cpu|cuda(?::(?P<number>0|[1-9][0-9]*))?", name)
    if wanted is None:
        raise UserError(f"--device {name} is not known: use auto, cpu, cuda or cuda:1 with the number of a GPU.")
    if name != "cpu" and not torch.cuda.is_available():
        raise UserError(f"--device {name} was asked for, but torch sees no GPU: use --device cpu.")
    return torch.device("cpu" if name == "cpu" else f"{GPU}:{own_gpu(wanted['number'])}")


def pick_each(names: Sequence[str], threads: int) -> list[torch.device]:
    """The devices with these names, in order; for `auto` alone, the CPU and a GPU, if there is one.

    Raises UserError if a device is named twice, or may be: this process would wait for a GPU that it holds itself.
    """
    if list(names) == ["auto"]:
        names = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    if len(set(names)) < len(names):
        raise UserError(f"--device {' '.join(names)} names a device twice: name each once.")
    if len(names) > 1 and ("auto" in names or ("cuda" in names and len({*names} - {"cpu", "cuda"}))):
        raise UserError(f"--device {' '.join(names)} may name a device twice: name GPUs by their numbers.")
    return [pick(name, threads) for name in names]


def label_of(*devices: torch.device) -> str:
    """The devices as named in the record of a job, such as `cpu` or `cuda:0` with the name of the GPU."""
    return ", ".join(
        f"{device} {torch.cuda.get_device_name(device)}" if device.type == "cuda" else str(device) for device in devices
    )


def own_gpu(number: str | None) -> int:
    """Claim a free GPU, or the one with this number, until this process ends; returns its number.

    Raises UserError if there is no such GPU, or if several processes of a training would wait for one another.
    """
    names = [str(torch.cuda.get_device_properties(place).uuid) for place in range(torch.cuda.device_count())]
    folder = lock_folder(LOCK_HOMES)
    if number is None:
        waiting = f"all {len(names)} GPUs are taken by other jobs: waiting for one"
        return taken(places_on(names), folder, waiting) % len(names)
    if int(number) >= len(names):
        raise UserError(f"--device cuda:{number} does not exist: torch sees {len(names)} GPUs, counted from 0.")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UserError(f"--device cuda:{number} is one GPU, but each process needs its own: use --device cuda.")
    taken(places_on([names[int(number)]]), folder, f"GPU {number} is taken by another job: waiting for it")
    return int(number)


def places_on(names: Sequence[str]) -> list[str]:
    """Names of the job slots on GPUs: first one on each GPU, then a second one on each, and so on.

    Raises UserError if the number of jobs that may share a GPU is not a positive integer.
    """
    jobs = os.environ.get(JOBS_A_GPU, "1")
    if re.fullmatch("[1-9][0-9]*", jobs) is None:
        raise UserError(f"{JOBS_A_GPU}={jobs} is not valid: give 1 or more.")
    return [*names, *(f"{name}.{job}" for job in range(2, int(jobs) + 1) for name in names)]


def lock_folder(homes: Sequence[Path]) -> Path:
    """The folder in which this user's jobs claim GPUs, inside the first of these folders that is writable."""
    home = next((home for home in homes if os.access(home, os.W_OK)), homes[-1])
    return home / f"heads-gpus-{os.getuid()}"


def taken(names: Sequence[str], folder: Path, waiting: str) -> int:
    """Index of the first name that could be claimed; if none is free, prints `waiting` once and waits."""
    reported = False
    while (place := claim(names, folder)) is None:
        if not reported:
            print(waiting, file=sys.stderr, flush=True)
            reported = True
        time.sleep(POLL_SECONDS)
    return place


def claim(names: Sequence[str], folder: Path) -> int | None:
    """Claim the first name in `folder` that no running process has claimed; returns its index, or None.

    The claim is a lock on a file, so it ends with its owner, in whatever way that ends. Its descriptor is left open on
    purpose: filelock's own objects release it when Python begins to shut down, seconds before the GPU is free.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for place, name in enumerate(names):
        lock = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        if lock_descriptor(lock, blocking=False):
            return place
        os.close(lock)
    return None


def products_dtype(precision: str, device: torch.device) -> torch.dtype:
    """The dtype of matrix products in training: bf16 if requested and faster on this processor, else fp32.

    AMD processors multiply faster in AVX-512's bf16 than in fp32. Intel processors do so only with AMX, which a virtual
    machine may hide: without it, a Xeon that has both reached 84 billion operations a second in bf16 and 160 in fp32.
    """
    features = torch.cpu.get_capabilities()
    by_amd = features.get("avx512_bf16", False) and not by_intel(features)
    gains = device.type != "cpu" or by_amd or features.get("amx_bf16", False)
    return torch.bfloat16 if precision == "bf16" and gains else torch.float32

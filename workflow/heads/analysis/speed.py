"""Speed of pruned models relative to the unpruned one (Michel et al. 2019, Table 4), timed in one process.

Devices are timed one after another, and models are compared only on the same device.

Every round times every model, in reverse order in every second round, so that other load on the machine affects all of
them. A model is compared with the unpruned one round by round; the median, minimum and maximum of these ratios are
reported. With n rounds, minimum and maximum enclose the true median with probability 1 - 2^(1-n): 97 % with six.

A model with shorter translations finishes sooner, whatever its heads cost. So all models are made to write translations
as long as the unpruned model's, batch by batch: this is the full beam search with only the end forced. Classifiers
predict one label per example, as in the paper.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count as count_from
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, median, stdev

import numpy as np
import torch
from torch import Tensor, nn

from heads.base.files import UserError
from heads.config.analyses import SpeedSettings
from heads.model.encoder import Encoder
from heads.model.folder import WEIGHTS, load_model
from heads.model.transformer import Transformer
from heads.text.batches import TimedBatch, pad
from heads.text.special_ids import EOS
from heads.text.vocabulary import Tokens
from heads.translation.beam_search import IMPOSSIBLE, beam_search

MEGABYTE = 1e6

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Contestant:
    """A model on its device, with its size on disk and peak memory, measured before any timing."""

    model: Encoder
    disk_mb: float
    peak_memory_mb: float | None


def source_batches(
    source: Tokens, unpruned: Encoder, settings: SpeedSettings, size: int, device: torch.device
) -> list[TimedBatch]:
    """Batches of `size` of the first `settings.sentences` sentences, sorted by length; the last may be smaller.

    Each translation is to have as many subwords as those of the `unpruned` model have on average in its batch.
    """
    count = min(settings.sentences, len(source))
    if count < size:
        raise UserError(f"speed.batch_sizes has {size}, but there are only {count} sentences: remove it.")
    order = np.argsort(source.lengths[:count], kind="stable")
    ends = np.array([] if unpruned.shape.encoder_only else [EOS], np.int32)
    batches = []
    for start in range(0, count, size):
        ids, mask = (part.to(device) for part in pad([np.append(source[i], ends) for i in order[start : start + size]]))
        free = search(unpruned, ids, mask, settings)
        batches.append(TimedBatch(ids, mask, round(mean(len(translation) for translation in free))))
    return batches


@torch.inference_mode()
def search(model: Encoder, source: Tensor, mask: Tensor, settings: SpeedSettings) -> list[list[int]]:
    """The outputs for one batch: translations, or labels as lists of one."""
    if not isinstance(model, Transformer):
        labels: list[list[int]] = model.projection(model(source, mask, None)).argmax(-1).tolist()
        return labels
    return beam_search(model, source, mask, beam=settings.beam, length_penalty=settings.length_penalty)


def translate_all(model: Encoder, batches: Sequence[TimedBatch], settings: SpeedSettings) -> int:
    """Translate every batch to its prescribed length and return the number of target subwords written."""
    subwords = 0
    for batch in batches:
        with ending_after(model, batch.subwords):
            subwords += sum(map(len, search(model, batch.source, batch.mask, settings)))
    return subwords


@contextmanager
def ending_after(model: Encoder, subwords: int) -> Iterator[None]:
    """Within the block, make one search end all its hypotheses after exactly `subwords` subwords.

    An encoder alone predicts its label at once and is left as it is.
    """
    if model.shape.encoder_only:
        yield
        return
    steps = count_from(1)

    def put_end(_module: nn.Module, _inputs: object, logits: Tensor) -> None:
        logits[..., EOS] = -IMPOSSIBLE if next(steps) > subwords else IMPOSSIBLE

    hook = model.projection.register_forward_hook(put_end)
    try:
        yield
    finally:
        hook.remove()


def rounds(work: Mapping[str, Callable[[], object]], repeats: int, clock: Clock) -> dict[str, list[float]]:
    """Seconds that each part of the work took in each of `repeats` rounds; every second round runs backwards."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for number in range(repeats):
        for name in list(work)[:: -1 if number % 2 else 1]:
            start = clock()
            work[name]()
            seconds[name].append(clock() - start)
    return seconds


def summary(seconds: Sequence[float], baseline: Sequence[float], examples: int) -> dict[str, float]:
    """Mean and standard deviation of examples per second; median, minimum and maximum of the paired ratios."""
    rates = [examples / value for value in seconds]
    ratios = [slow / value for value, slow in zip(seconds, baseline, strict=True)]
    return {
        "examples_per_second": mean(rates),
        "examples_per_second_sd": stdev(rates),
        "ratio": median(ratios),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
    }


def compare(
    contestants: Mapping[str, Contestant], source: Tokens, settings: SpeedSettings, device: torch.device, clock: Clock
) -> list[dict[str, object]]:
    """One row as in SPEED_COLUMNS for each batch size and model; ratios are relative to the first model."""
    rows: list[dict[str, object]] = []
    unpruned = next(iter(contestants.values())).model
    on_gpu, cpu = device.type == "cuda", f"CPU, {torch.get_num_threads()} threads"
    name_of_device = torch.cuda.get_device_name(device) if on_gpu else cpu
    for size in settings.batch_sizes:
        batches = source_batches(source, unpruned, settings, size, device)
        examples = sum(len(batch.source) for batch in batches)
        work = {name: partial(translate_all, one.model, batches, settings) for name, one in contestants.items()}
        subwords = {name: translate() for name, translate in work.items()}
        seconds = rounds(work, settings.repeats, clock)
        first = next(iter(seconds.values()))
        rows += [
            {
                "run": name,
                "batch_sentences": size,
                "repeats": settings.repeats,
                **summary(seconds[name], first, examples),
                "sentences": examples,
                "subwords_per_example": subwords[name] / examples,
                "heads": len(one.model.shape.heads()),
                "of": len(one.model.shape.all_heads()),
                "parameters": sum(value.numel() for value in one.model.parameters()),
                "disk_mb": one.disk_mb,
                "peak_memory_mb": one.peak_memory_mb,
                "device": name_of_device,
            }
            for name, one in contestants.items()
        ]
    return rows


def clock_of(device: torch.device) -> Clock:
    """A clock that waits for the device to finish its work before it reads the time."""

    def clock() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter()

    return clock


def peak_memory_mb(folder: Path, source: Path, settings: SpeedSettings, device: torch.device) -> float | None:
    """Peak memory in MB of a fresh process that only translates the largest batches with one model.

    On a GPU, the memory allocated by torch; on a CPU, the resident memory including libraries, or None if the system
    does not report it (Linux does). In a shared process the larger model would hide the smaller one's peak.
    """
    # Forked from a process that has imported this module and done no more, as importing takes longer than translating.
    fresh = get_context("forkserver")
    fresh.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(1, fresh) as process:
        return process.submit(_peak_memory_mb, folder, source, settings, device, torch.get_num_threads()).result()


def _peak_memory_mb(
    folder: Path, source: Path, settings: SpeedSettings, device: torch.device, threads: int
) -> float | None:
    torch.set_num_threads(threads)
    torch.backends.cuda.enable_cudnn_sdp(enabled=False)  # as wherever a device is picked
    model = load_model(folder).to(device)
    translate_all(model, source_batches(Tokens(source), model, settings, max(settings.batch_sizes), device), settings)
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / MEGABYTE
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    # Not getrusage: a child process inherits its parent's maximum.
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))
    return int(kilobytes) * 1024 / MEGABYTE


def time_on(
    devices: Sequence[torch.device], folders: Mapping[str, Path], source: Path, settings: SpeedSettings
) -> list[dict[str, object]]:
    """The rows of `compare` for each device in turn; the first of `folders` is the unpruned model's."""
    rows: list[dict[str, object]] = []
    for device in devices:
        contestants = {name: contestant(folder, source, settings, device) for name, folder in folders.items()}
        rows += compare(contestants, Tokens(source), settings, device, clock_of(device))
    return rows


def contestant(folder: Path, source: Path, settings: SpeedSettings, device: torch.device) -> Contestant:
    """The model of a folder on the device, after its memory has been measured in a separate process."""
    peak = peak_memory_mb(folder, source, settings, device)
    disk_mb = (folder / WEIGHTS).stat().st_size / MEGABYTE
    return Contestant(load_model(folder).to(device), disk_mb, peak)

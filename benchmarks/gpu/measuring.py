"""Shared by the scripts here: facts about the run, tables, the matrix rate, a Transformer-base and text for it."""

import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file

from heads.base.files import write_tsv
from heads.base.names import SIDES
from heads.base.provenance import provenance
from heads.base.targets import Target
from heads.config.trainings import GatesSettings, LengthSettings, ModelSettings, TrainingSettings
from heads.model.shape import unpruned_shape
from heads.model.transformer import Transformer
from heads.text.batches import Batch, Pairs
from heads.text.packed import Packed
from heads.text.special_ids import EOS, PAD
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of
from heads.training.job import frozen_beside, pruning_of
from heads.training.loop import Training
from heads.training.schedule import TrainingPlan

WORKFLOW = Path(__file__).absolute().parents[2] / "workflow"
SEED = 1
UPDATES_PLANNED = 10_000


@dataclass(frozen=True)
class Sizes:
    """What is timed: a model, its text, and how often."""

    model: ModelSettings
    subwords: int
    pairs: int
    batch_tokens: tuple[int, ...]
    matrix: int
    warm: int
    updates: int
    sentences: int
    """The number of sentences to translate."""
    beam_tokens: tuple[int, ...]


FULL = Sizes(ModelSettings(dropout=0.3), 32_000, 60_000, (16_000, 64_000), 8192, 5, 20, 3000, (16_000,))
TINY = ModelSettings(layers=1, heads=2, width=8, feedforward=12, dropout=0.3)
SMALL = Sizes(TINY, 60, 100, (200, 400), 64, 1, 1, 3, (60,))
"""Sizes that take seconds on a CPU, to check that the scripts work; the measured numbers mean nothing."""


def wait(device: torch.device) -> None:
    """Wait until the device has finished all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds(work: Callable[[], Any], device: torch.device, times: int) -> float:
    """The median time of some work in seconds, after a third as many rounds of warm-up."""
    taken = []
    for _ in range(times // 3 + times):
        wait(device)
        started = time.perf_counter()
        work()
        wait(device)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken[times // 3 :])


def matrix_rate(device: torch.device, dtype: torch.dtype, size: int, *, tf32: bool = False) -> float:
    """Floating-point operations per second in products of random square matrices."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    one, other = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    found = 2 * size**3 / seconds(lambda: one @ other, device, 12)
    torch.set_float32_matmul_precision(before)
    return found


def about(device: torch.device) -> list[dict[str, str]]:
    """How and on which machine everything was measured, one row per fact."""
    driver = ""
    if device.type == "cuda" and shutil.which("nvidia-smi"):
        query = ["nvidia-smi", "--query-gpu=driver_version,memory.total", "--format=csv,noheader"]
        driver = subprocess.run(query, check=False, capture_output=True, text=True).stdout
    facts = {
        "device": label_of(device),
        "driver and memory": " ".join(driver.split()),
        "cuda": str(torch.version.cuda),
        "cudnn": str(torch.backends.cudnn.version()),
        "cores": str(os.cpu_count()),
        **{name: str(value) for name, value in provenance().items()},
        "seed": str(SEED),
        "command": shlex.join(["python", *sys.argv]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    return [{"what": name, "value": value} for name, value in facts.items()]


def environment(**more: str) -> dict[str, str]:
    """The environment of a process in any folder: the clone's package first, then what PYTHONPATH names from here."""
    named = [str(Path(entry).absolute()) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(WORKFLOW), *named]), **more}


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a table of measurements to a file and print it."""
    shown = [
        {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()} for row in rows
    ]
    write_tsv(path, shown, tuple(rows[0]) if rows else ("nothing",))
    print(f"\n{path}\n{path.read_text(encoding='utf-8')}", end="", flush=True)


def random_pairs(sizes: Sizes, folder: Path, text: Path | None = None) -> Pairs:
    """Sentences of random subwords with a mean length of about 24 as in the paper's WMT, and targets about as long.

    text: a folder of subwords, whose first training pairs give the lengths instead.
    """
    generator = np.random.default_rng(SEED)
    source = np.exp(generator.normal(2.9, 0.75, sizes.pairs))
    target = source * np.exp(generator.normal(0.0, 0.25, sizes.pairs))
    if text is not None:
        source, target = (Tokens(text / f"train.{side}.safetensors").lengths[: sizes.pairs] for side in SIDES)
    sides = []
    for name, wanted in (("source", source), ("target", target)):
        lengths = np.clip(np.round(wanted), 1, 150).astype(np.int64)
        ids = generator.integers(EOS + 2, sizes.subwords, int(lengths.sum())).astype(np.int32)
        save_file({"ids": ids, "offsets": np.concatenate([[0], np.cumsum(lengths)])}, folder / name)
        sides.append(Tokens(folder / name))
    one, other = sides
    return Pairs(one, other, 150)


def share_of_padding(batches: Iterable[Batch | Packed]) -> float:
    """The share of padding among all positions in the source and target of batches for a translator."""
    sides = [ids for batch in batches if isinstance(batch, Packed) for ids in (batch.source, batch.target_output)]
    return sum(int((ids == PAD).sum()) for ids in sides) / sum(map(len, sides))


def new_model(sizes: Sizes) -> Transformer:
    """A model with random weights."""
    torch.manual_seed(SEED)
    return Transformer(unpruned_shape(sizes.model, sizes.subwords, sizes.subwords))


def new_training(
    sizes: Sizes, pairs: Pairs, device: torch.device, batch_tokens: int, scope: str = "", optimizer: str = "adam"
) -> Training:
    """A training whose updates are one micro-batch each, with gates on the heads of a scope if one is given."""
    model = new_model(sizes).train()
    settings = TrainingSettings(
        batch_tokens=batch_tokens,
        micro_batch_tokens=batch_tokens,
        learning_rate=0.000158114,
        warmup_updates=4000,
        optimizer=optimizer,
    )
    gates = GatesSettings(updates=UPDATES_PLANNED)
    frozen = frozen_beside(scope, model) if scope else ()
    pruning = pruning_of(model, scope, Target.parse("lam-0.01"), gates, frozen) if scope else None
    length = LengthSettings(updates=UPDATES_PLANNED, patience=0, average_last=1, average_every=1)
    return Training(model, pairs, TrainingPlan(settings, length, SEED, 0, device), pruning)

"""One training in two processes against the same one in a single process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from checkouts import ROOT
from heads.checkpoints import load_tensors
from heads.files import read_jsonl, read_tsv
from heads.parallel import Processes
from heads.settings import TrainingSettings
from test_train import data, words_of

__all__ = ["data"]


def launched(processes: int, words: list[str]) -> None:
    """Run `python -m heads WORDS` in so many processes, as torchrun does."""
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*start, "-m", "heads", *words], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("stage", ["baseline", "gates"])
def test_two_processes_train_the_same_model_as_one_up_to_rounding(
    data: Path, training_settings: Callable[..., TrainingSettings], stage: str
) -> None:
    settings = training_settings(dev_bleu_sentences=3, batch_tokens=60, micro_batch_tokens=15)
    found = []
    for processes in (1, 2):
        folder = data / f"{processes}"
        folder.mkdir()
        for path in data.glob("*.*"):
            (folder / path.name).symlink_to(path)
        launched(processes if stage == "baseline" else 1, words_of("baseline", folder, settings))
        if stage == "gates":
            start = ["--start-model", "m.safetensors", "--start-shape", "m.json"]
            start = [word if word.startswith("--") else str(folder / "baseline" / word) for word in start]
            outputs = ["--heads", str(folder / "heads.tsv"), "--gates-log", str(folder / "gates.jsonl")]
            launched(processes, words_of("gates", folder, settings, *start, *outputs, "--scope=all", "--target=lam-1"))
            assert len(read_tsv(folder / "heads.tsv")) == 3 * 2 * 3
        weights, _ = load_tensors(folder / stage / "m.safetensors")
        found.append((weights, read_jsonl(folder / stage / "log.jsonl")))
    (alone, log_alone), (shared, log_shared) = found
    for name, value in alone.items():
        torch.testing.assert_close(shared[name], value, rtol=1e-4, atol=1e-5)
    assert [row["update"] for row in log_shared] == [row["update"] for row in log_alone]
    assert log_shared[-1]["loss"] == pytest.approx(log_alone[-1]["loss"], rel=1e-4)


def test_micro_batches_are_dealt_out_so_that_each_goes_to_one_process() -> None:
    dealt = [Processes(rank, 3).share(range(7)) for rank in range(3)]
    assert sorted(number for share in dealt for number in share) == list(range(7))

"""One training in two processes compared with the same one in a single process."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from test_training import data

from checkouts import ROOT
from heads.base.files import read_jsonl, read_tsv, read_yaml, write_text
from heads.config.trainings import TrainingSettings
from heads.model.checkpoint import load_tensors
from heads.text.batches import cut
from heads.training.distributed import Processes
from tiny_commands import words_of
from warm_python import warm_python

__all__ = ["data"]


def wait_until(true: Callable[[], bool]) -> None:
    """Wait until a condition holds, for a minute at most."""
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def written(path: Path) -> int:
    """When a file was last written, in nanoseconds; 0 if it does not exist."""
    return path.stat().st_mtime_ns if path.exists() else 0


def newer(path: Path, before: int) -> bool:
    """Whether a file was written after a time."""
    return written(path) > before


def started(processes: int, words: list[str], said: Path) -> subprocess.Popen[str]:
    """Start `python -m heads WORDS`, which starts the given number of processes itself if there is more than one."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "OMP_NUM_THREADS": "1"}
    command = [warm_python() if processes == 1 else sys.executable, "-m", "heads", *words, f"--processes={processes}"]
    with said.open("w", encoding="utf-8") as stream:
        return subprocess.Popen(command, env=environment, stdout=stream, stderr=stream, text=True)


def launched(processes: int, words: list[str], said: Path) -> None:
    """Run a command in the given number of processes to its end."""
    status = started(processes, words, said).wait(120)
    assert status == 0, said.read_text(encoding="utf-8")[-3000:]


@pytest.mark.slow
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
        launched(processes if stage == "baseline" else 1, words_of("baseline", folder, settings), folder / "said")
        if stage == "gates":
            start = ["--start-model", str(folder / "baseline")]
            outputs = ["--heads", str(folder / "heads.tsv"), "--gates-log", str(folder / "gates.jsonl")]
            words = words_of("gates", folder, settings, *start, *outputs, "--scope=all", "--target=lam-1")
            launched(processes, words, folder / "said")
            assert len(read_tsv(folder / "heads.tsv")) == 3 * 2 * 3
        weights, _ = load_tensors(folder / stage / "model.safetensors")
        assert ("2 processes share" in (folder / "said").read_text(encoding="utf-8")) == (processes == 2)
        found.append((weights, read_jsonl(folder / stage / "log.jsonl")))
    (alone, log_alone), (shared, log_shared) = found
    for name, value in alone.items():
        torch.testing.assert_close(shared[name], value, rtol=1e-4, atol=1e-5)
    assert [row["update"] for row in log_shared] == [row["update"] for row in log_alone]
    assert log_shared[-1]["loss"] == pytest.approx(log_alone[-1]["loss"], rel=1e-4)


@pytest.mark.slow
def test_all_processes_stop_after_the_same_update_when_one_training_is_asked_to_and_go_on_from_there(
    data: Path, training_settings: Callable[..., TrainingSettings]
) -> None:
    words = words_of("baseline", data, training_settings(batch_tokens=60, micro_batch_tokens=15))
    settings = data / "baseline/settings.yaml"
    content = read_yaml(settings)
    content["baseline"]["updates"] = 10**6
    write_text(settings, yaml.safe_dump(content))
    state, said = data / "baseline/unfinished/state.safetensors", data / "said"
    reached = 0
    for word in ("", "resumed at update"):
        before = written(state)
        process = started(2, [*words, "--save-every-seconds=1"], said)
        # A state of its own: only then are both in their updates, where a signal is a request and not the end.
        wait_until(partial(newer, state, before))
        process.terminate()
        assert process.wait(60) != 0
        text = said.read_text(encoding="utf-8")
        stops = re.findall(r"^error: stopped at update (\d+),", text, re.MULTILINE)
        assert len(stops) == 2 and stops[0] == stops[1], text[-3000:]
        assert word in text
        assert load_tensors(state)[1]["update"] == int(stops[0]) > reached
        reached = int(stops[0])


@pytest.mark.parametrize(("batch", "most"), [(1024, 1024), (16000, 4000), (1000, 300)])
def test_each_process_gets_as_many_micro_batches_of_an_update_as_any_other(batch: int, most: int) -> None:
    lengths = np.ones(batch // 2, np.int64)  # two tokens each, with its end
    for count in range(1, 9):
        tokens = Processes(0, count).part_tokens(batch, most)
        parts = cut(np.arange(len(lengths)), lengths, tokens)
        shares = [len(Processes(rank, count).share(parts)) for rank in range(count)]
        assert tokens <= most
        assert max(shares) == min(shares)


def test_micro_batches_are_dealt_out_so_that_each_goes_to_one_process() -> None:
    dealt = [Processes(rank, 3).share(range(7)) for rank in range(3)]
    assert sorted(number for share in dealt for number in share) == list(range(7))

"""Tools for injecting faults: a tiny corpus ready for training, and real processes that die on purpose.

Processes come from a server that has torch loaded already, so that each costs a fraction of a second.
"""

import itertools
import multiprocessing
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch._inductor  # noqa: F401 - asking torch for determinism loads it
import yaml

from checkouts import TINY, configuration
from heads.__main__ import main
from heads.base.files import read_yaml, write_text
from heads.base.names import SIDES, SPLITS
from heads.cli import baseline, gates  # noqa: F401 - loaded once, by the server
from heads.config.settings import merged, resolve, stage_settings
from heads.model import checkpoint as checkpoints
from heads.training.loop import Row, Training

SMALL = {
    "corpora": {"tiny": {"pairs": {"train": 200, "dev": 6, "test": 5}}},
    "experiments": {
        "tiny": {
            "bpe": {"source_subwords": 120, "target_subwords": 130},
            "model": {"width": 8, "feedforward": 10},
            "training": {"batch_tokens": 200, "micro_batch_tokens": 100, "evaluate_every": 5, "dev_bleu_sentences": 0},
            "baseline": {"updates": 12, "average_last": 2, "average_every": 3, "checkpoint_updates": [4]},
            "gates": {"updates": 7, "average_last": 1, "record_every": 2},
        }
    },
}
CONTEXT = multiprocessing.get_context("forkserver")
PATIENCE_SECONDS = 90


@dataclass(frozen=True)
class Fault:
    """What goes wrong inside a process."""

    kill_before: int = 0
    """Update before which the process kills itself with -9."""
    kill_in_save: int = 0
    """Number of the tensor file during whose writing the process kills itself."""
    spoil_after: int = 0
    """Update after which a weight is NaN."""
    most_bytes: int = 0
    """Largest size of a file in bytes; longer ones cannot be written."""
    seconds_an_update: float = 0.0
    clock_backwards: bool = False
    """Whether the system clock goes back an hour each time it is read."""


NO_FAULT = Fault()


def work(words: list[str], said: Path, fault: Fault, given: Path | None) -> None:
    """In the new process, run a command with messages in `said`; it reads `given`, with its output beside that."""
    new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    os.dup2(os.open(said, new), 2)
    os.dup2(os.open(given.with_suffix(".out"), new) if given else 2, 1)
    if given:
        os.dup2(os.open(given, os.O_RDONLY), 0)
        sys.stdin = os.fdopen(0, encoding="utf-8")
    if fault.most_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault.most_bytes, fault.most_bytes))
    if fault.clock_backwards:
        seconds = itertools.count(365 * 86400, -3600)
        patched: Any = time
        patched.time, patched.time_ns = lambda: float(next(seconds)), lambda: next(seconds) * 10**9
    step, save, saves = Training.step, checkpoints.save_file, iter(range(1, 10_000))

    def stepping(training: Training, *update: Any) -> Row:
        if training.update + 1 == fault.kill_before:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(fault.seconds_an_update)
        row = step(training, *update)
        if training.update == fault.spoil_after:
            next(training.model.parameters()).data[0] = float("nan")
        return row

    def saving(tensors: Any, path: Path, **rest: Any) -> None:
        save(tensors, path, **rest)
        if next(saves) == fault.kill_in_save:
            os.truncate(path, path.stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(Training, "step", stepping)  # noqa: B010 - of another type by name only
    setattr(checkpoints, "save_file", saving)  # noqa: B010
    sys.exit(main(words))


class Command:
    """A command that runs in a process of its own."""

    def __init__(self, words: list[str], said: Path, fault: Fault = NO_FAULT, given: Path | None = None) -> None:
        self.said = said
        self.process: BaseProcess = CONTEXT.Process(target=work, args=(words, said, fault, given), daemon=True)
        self.process.start()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def end(self) -> tuple[int | None, str]:
        """Wait for its end; return its exit status (negative for a signal) and what it said.

        One that does not end by itself is killed and raises TimeoutError, so as not to pass for one killed on purpose.
        """
        self.process.join(PATIENCE_SECONDS)
        said = self.said.read_text(encoding="utf-8")
        if self.process.is_alive():
            self.process.kill()
            self.process.join(PATIENCE_SECONDS)
            raise TimeoutError(f"no end after {PATIENCE_SECONDS} seconds: {said}")
        return self.process.exitcode, said


def config(**changes: Any) -> dict[str, Any]:
    """The project's configuration with an even smaller tiny experiment and changes to its settings."""
    whole = merged(merged(configuration(), read_yaml(TINY)), SMALL)
    return merged(whole, {"experiments": {"tiny": changes}})


def write_settings(results: Path, **changes: Any) -> None:
    """Write the settings files that the workflow would write, with changes to the tiny experiment."""
    whole = config(**changes)
    write_text(results / "corpora/tiny/settings.yaml", yaml.safe_dump(whole["corpora"]["tiny"]))
    for stage in ("bpe", "baseline", "gates", "score"):
        write_text(
            results / f"tiny/settings/{stage}.yaml", yaml.safe_dump(stage_settings(resolve(whole)["tiny"], stage))
        )


def prepare(results: Path) -> None:
    """Make all that a training reads, with the commands that the workflow would run."""
    write_settings(results)
    corpus = results / "corpora/tiny"
    given = ["--settings", str(corpus / "settings.yaml"), "--downloads", str(results / "downloads")]
    assert main(["corpus", *given, "--out-folder", str(corpus)]) == 0
    assert encoded(corpus, results / "tiny/bpe", results / "tiny/settings/bpe.yaml") == 0


def encoded(corpus: Path, bpe: Path, settings: Path) -> int:
    """Make both vocabularies of a corpus, then its subwords; return the exit status."""
    for side in SIDES:
        text, model = str(corpus / f"train.{side}.txt"), str(bpe / f"{side}.model")
        given = ["--settings", str(settings), "--side", side, "--text", text]
        if status := main(["bpe", *given, "--model", model]):
            return status
        for split in SPLITS:
            given = ["--text", str(corpus / f"{split}.{side}.txt"), "--bpe", model]
            assert main(["encode", *given, "--tokens", str(bpe / f"{split}.{side}.safetensors")]) == 0
    return 0


def training_words(stage: str, results: Path, out: Path, **others: object) -> list[str]:
    """The command line of a training that saves its state after every update; others: flags with other values."""
    flags: dict[str, object] = {
        "settings": results / f"tiny/settings/{stage}.yaml",
        "data": results / "tiny/bpe",
        "references": results / "corpora/tiny/dev.target.txt",
        "seed": 1,
        "model": out,
        "history": out / "train.jsonl",
        "save-every-seconds": 0,
    }
    if stage == "baseline":
        flags["checkpoints"] = out / "checkpoints"
    flags |= {name.replace("_", "-"): value for name, value in others.items()}
    return [stage, *(text for name, value in flags.items() for text in (f"--{name}", str(value)))]


def gates_words(results: Path, start: Path, out: Path, **others: object) -> list[str]:
    """The command line of a training with gates."""
    files = {"start_model": start, "heads": out / "heads.tsv", "gates_log": out / "gates.jsonl"}
    return training_words("gates", results, out, **{"scope": "all", "target": "lam-0.05", **files, **others})

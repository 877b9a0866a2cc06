"""The state of a running training on disk, in a folder beside its outputs that is deleted when it is done.

It is not an output, which Snakemake deletes when a job fails, so a killed training finds its state again. Only the same
training resumes from a state: the fingerprint of settings, seed and data must match.
"""

import fcntl
import hashlib
import json
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from heads.base.files import UserError, atomic_path, full_disk_named, read_jsonl
from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.model.checkpoint import load_tensors, save_tensors
from heads.model.encoder import Encoder
from heads.model.folder import WEIGHTS
from heads.model.shape import facts_of
from heads.pruning.gates import TrainableGates
from heads.training.schedule import TrainingPlan


class Resumable(Protocol):
    """What this module needs of a training."""

    plan: TrainingPlan
    update: int
    """The number of updates done."""

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that changes while it runs: tensors, and JSON."""

    def fits(self, tensors: dict[str, Tensor]) -> bool:
        """Whether a state has its tensors."""

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Go back to a state."""


def fingerprint(*parts: Any) -> str:
    """A short digest of JSON-serialisable values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def update_of(path: Path) -> int:
    """The update after which weights were saved, from the name of their file."""
    return int(path.stem.rpartition("-")[2])


def checkpoints_in(folder: Path) -> dict[int, Path]:
    """The files that `write_checkpoints` wrote to a folder, by update."""
    return {update_of(path): path for path in sorted(folder.glob("checkpoint-*.safetensors"))}


def course_of(model: Path, checkpoints: Path) -> list[tuple[int, Path, int]]:
    """Update, weights, and 0 for each checkpoint, then the same with 1 for the finished model in its folder."""
    course = [(update, path, 0) for update, path in checkpoints_in(checkpoints).items()]
    return [*course, (int(facts_of(model)["updates"]), model / WEIGHTS, 1)]


def _stopped(training: Resumable) -> UserError:
    return UserError(f"stopped at update {training.update}, its state is kept: run again to go on from there.")


class UnfinishedFolder:
    """Folder with `state.safetensors`, the logs so far, the snapshots to average and the checkpoints to keep."""

    def __init__(self, folder: Path, identity: str, save_every_seconds: float) -> None:
        self.folder, self.identity, self.every = folder, identity, save_every_seconds
        self.saved, self.stop_asked = time.monotonic(), False
        folder.mkdir(parents=True, exist_ok=True)
        # Beside the folder, which a clean start deletes; released when its owner ends, in whatever way.
        self.lock = folder.with_name(".unfinished.lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(f"{folder} is in use by another training: wait for it, or stop it first.") from error

    @property
    def state(self) -> Path:
        """The file that holds the last saved state."""
        return self.folder / "state.safetensors"

    def resume(self, training: Resumable) -> None:
        """Resume from the saved state if it is intact and from this training and version; else start clean."""
        facts: dict[str, Any] = {"identity": None}
        if self.state.exists():
            try:
                for path in [*self._kept("snapshot"), *self._kept("checkpoint")]:
                    load_tensors(path)
                tensors, facts = load_tensors(self.state)
            except UserError:
                print(f"a file in {self.folder} is damaged: the training starts over", file=sys.stderr, flush=True)
        if facts["identity"] == self.identity and not training.fits(tensors):
            print(
                f"{self.state} is from another version of this code: the training starts over",
                file=sys.stderr,
                flush=True,
            )
            facts = {"identity": None}
        if facts["identity"] != self.identity:
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            return
        training.restore(tensors, facts)
        for name in ("train.jsonl", "gates.jsonl"):
            self._cut(self.folder / name, facts["update"])
        for path in [*self._kept("snapshot"), *self._kept("checkpoint")]:
            if update_of(path) > facts["update"]:
                path.unlink()
        print(f"resumed at update {facts['update']}", file=sys.stderr, flush=True)

    def _cut(self, path: Path, update: int) -> None:
        if path.exists():
            kept = [record for record in read_jsonl(path) if record["update"] <= update]
            with atomic_path(path) as temporary:
                temporary.write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")

    def save_when_due(self, training: Resumable) -> None:
        """Save the state if the last time is long enough ago, or if a stop was requested.

        Raises UserError to stop, and FloatingPointError instead of saving weights that are not finite.
        """
        stop = bool(training.plan.processes.broadcast(float(self.stop_asked)))
        if stop or time.monotonic() - self.saved >= self.every:
            tensors, facts = training.state()
            save_tensors(self.state, tensors, {**facts, "identity": self.identity})
            self.saved = time.monotonic()
        if stop:
            raise _stopped(training)

    @contextmanager
    def stopping_on_term(self) -> Iterator[None]:
        """Save and stop after the current update on SIGTERM, which a cluster sends before the time is up."""
        before = signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stop_asked", True))
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def log(self, record: dict[str, Any]) -> None:
        """Add a line to the training log and print it."""
        self._append("train.jsonl", record)
        shown = {key: round(value, 4) if isinstance(value, float) else value for key, value in record.items()}
        print("  ".join(f"{key} {value}" for key, value in shown.items()), file=sys.stderr, flush=True)

    def record_gates(self, update: int, gates: TrainableGates, lam: list[float]) -> None:
        """Log each head's P(gate > 0), numbers of open units, and lambda, for the figure of closing gates."""
        chances = gates.chances()
        record: dict[str, Any] = {"update": update, "lam": lam}
        record["p_open"] = {
            kind: [[round(chance, 4) for chance in layer.tolist()] for layer in layers]
            for kind, layers in chances.items()
            if kind in ATTENTIONS
        }
        if units := {
            stack: [round(float(layer.detach().sum()), 1) for layer in chances[stack]]
            for stack in FEEDFORWARDS
            if stack in chances
        }:
            record["open_units"] = units
        self._append("gates.jsonl", record)

    def _append(self, name: str, record: dict[str, Any]) -> None:
        with full_disk_named(self.folder / name), (self.folder / name).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")

    def snapshot(self, update: int, model: Encoder, keep: int) -> None:
        """Save a snapshot of the current weights and delete all but the last `keep` snapshots."""
        save_tensors(self.folder / f"snapshot-{update:08d}.safetensors", model.state_dict(), {})
        for old in self._kept("snapshot")[:-keep]:
            old.unlink()

    def keep_moment(self, update: int, model: Encoder) -> None:
        """Save the current weights as a permanent checkpoint."""
        save_tensors(self.folder / f"checkpoint-{update:08d}.safetensors", model.state_dict(), {})

    def write_checkpoints(self, folder: Path) -> None:
        """Copy the permanent checkpoints into a folder of their own, whose old content is deleted."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for path in self._kept("checkpoint"):
            with atomic_path(folder / path.name) as temporary:
                shutil.copyfile(path, temporary)

    def load_average(self, model: Encoder) -> None:
        """Load the mean of all snapshots into the model; does nothing if there are none."""
        paths = self._kept("snapshot")
        if not paths:
            return
        total: dict[str, Tensor] = {}
        for path in paths:
            for name, tensor in load_tensors(path)[0].items():
                total[name] = total[name] + tensor.double() if name in total else tensor.double()
        model.load_state_dict({name: (tensor / len(paths)).to(torch.float32) for name, tensor in total.items()})

    def _kept(self, kind: str) -> list[Path]:
        return sorted(self.folder.glob(f"{kind}-*.safetensors"))

    def finish(self, outputs: dict[str, Path]) -> None:
        """Copy the logs to their final places, then delete the folder: all other outputs must have been written."""
        for name, path in outputs.items():
            with atomic_path(path) as temporary:
                shutil.copyfile(self.folder / name, temporary)
        # The state first: a kill halfway through must not leave a state that lacks its snapshots and logs.
        self.state.unlink(missing_ok=True)
        shutil.rmtree(self.folder)
        Path(self.lock.name).unlink()
        self.lock.close()


class OtherProcess(UnfinishedFolder):
    """The folder as used by the other processes of a training, which read the state and write nothing."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder, self.identity = folder, identity

    def resume(self, training: Resumable) -> None:
        """Resume from the state that the first process resumed from."""
        if self.state.exists():
            training.restore(*load_tensors(self.state))

    def save_when_due(self, training: Resumable) -> None:
        """Leave saving to the first process, and stop when it says so. Raises UserError to stop."""
        if training.plan.processes.broadcast(0.0):
            raise _stopped(training)

    def _left_to_the_first(self, *_: Any, **__: Any) -> None:
        """Do nothing."""

    _append = log = snapshot = keep_moment = load_average = _left_to_the_first

"""The state of a training on disk while it runs, in a folder beside its outputs that goes when it is done.

Snakemake deletes the outputs of a failed job; this folder is no output, so a killed training finds its state again.
A state is only taken up by the very same training: the fingerprint of settings, seed and data must agree.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from heads.checkpoints import load_tensors, save_tensors
from heads.files import UserError, atomic_path, read_jsonl
from heads.gates import HeadGates, probability_open
from heads.transformer import Transformer

if TYPE_CHECKING:
    from heads.train import Training


def fingerprint(*parts: Any) -> str:
    """A short digest of JSON-able things."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


class Unfinished:
    """Folder with `state.safetensors`, the logs so far, and the snapshots to be averaged."""

    def __init__(self, folder: Path, identity: str, save_every_seconds: float) -> None:
        self.folder, self.identity, self.every = folder, identity, save_every_seconds
        self.saved = time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)
        # Beside the folder, which a clean start removes; goes with its owner, however that ends.
        self.lock = folder.with_name(".unfinished.lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(f"{folder} is in use by another training: wait for it, or stop it first.") from error

    @property
    def state(self) -> Path:
        """The file that holds the last saved state."""
        return self.folder / "state.safetensors"

    def resume(self, training: Training) -> None:
        """Take up the saved state if it is this training's; else start clean."""
        try:
            tensors, facts = load_tensors(self.state)
        except UserError:
            facts = {"identity": None}
        if facts["identity"] != self.identity:
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            return
        training.restore(tensors, facts)
        for name in ("train.jsonl", "gates.jsonl"):
            self._cut(self.folder / name, facts["update"])
        for path in self._snapshots():
            if int(path.stem.removeprefix("snapshot-")) > facts["update"]:
                path.unlink()
        print(f"resumed at update {facts['update']}", file=sys.stderr, flush=True)

    def _cut(self, path: Path, update: int) -> None:
        if path.exists():
            kept = [record for record in read_jsonl(path) if record["update"] <= update]
            with atomic_path(path) as temporary:
                temporary.write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")

    def save_when_due(self, training: Training) -> None:
        """Save the state if the last time is long enough ago."""
        if time.monotonic() - self.saved >= self.every:
            tensors, facts = training.state()
            save_tensors(self.state, tensors, {**facts, "identity": self.identity})
            self.saved = time.monotonic()

    def log(self, record: dict[str, Any]) -> None:
        """Add a line to the training log, and show it."""
        self._append("train.jsonl", record)
        shown = {key: round(value, 4) if isinstance(value, float) else value for key, value in record.items()}
        print("  ".join(f"{key} {value}" for key, value in shown.items()), file=sys.stderr, flush=True)

    def record_gates(self, update: int, gates: HeadGates, lam: list[float]) -> None:
        """Add a line with every head's P(gate > 0) and the price of an open head, for the picture of gates closing."""
        open_now: dict[str, list[list[float]]] = {}
        for name, log_alpha in gates.log_alpha.items():
            values = probability_open(log_alpha.detach(), gates.shape).tolist()
            open_now.setdefault(name.split(":")[0], []).append([round(value, 4) for value in values])
        self._append("gates.jsonl", {"update": update, "lam": lam, "p_open": open_now})

    def _append(self, name: str, record: dict[str, Any]) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")

    def snapshot(self, update: int, model: Transformer, keep: int) -> None:
        """Keep the weights of now, and of the `keep` last times."""
        save_tensors(self.folder / f"snapshot-{update:08d}.safetensors", model.state_dict(), {})
        for old in self._snapshots()[:-keep]:
            old.unlink()

    def load_average(self, model: Transformer) -> None:
        """Put the mean of all kept snapshots into the model; nothing happens when there is none."""
        paths = self._snapshots()
        if not paths:
            return
        total: dict[str, Tensor] = {}
        for path in paths:
            for name, tensor in load_tensors(path)[0].items():
                total[name] = total[name] + tensor.double() if name in total else tensor.double()
        model.load_state_dict({name: (tensor / len(paths)).to(torch.float32) for name, tensor in total.items()})

    def _snapshots(self) -> list[Path]:
        return sorted(self.folder.glob("snapshot-*.safetensors"))

    def finish(self, outputs: dict[str, Path]) -> None:
        """Copy the logs to where they belong, and only then remove the folder: all other outputs must be written."""
        for name, path in outputs.items():
            with atomic_path(path) as temporary:
                shutil.copyfile(self.folder / name, temporary)
        # The state first: a kill in the midst of the rest must not leave one that lacks its snapshots and logs.
        self.state.unlink(missing_ok=True)
        shutil.rmtree(self.folder)
        Path(self.lock.name).unlink()
        self.lock.close()

"""The job that made each result, as recorded by Snakemake beside the results and by the jobs in their logs."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heads.base.files import read_json, settings_given
from heads.base.provenance import recorded

KEPT = Path(".snakemake/metadata")
"""Where Snakemake keeps a file for each output, named by its path in URL-safe base 64, long names in parts with @."""

MODEL_FILES = ("model.safetensors", "model.json")


@dataclass(frozen=True)
class Job:
    """The job that made a file: rule, inputs, log, command (empty if run inside Snakemake), times in Unix seconds."""

    rule: str
    inputs: tuple[str, ...]
    log: str
    command: str
    started: float
    ended: float
    record: Mapping[str, Any] = field(hash=False)

    @property
    def given(self) -> str:
        """The value of `--settings` in the command; empty if it has no such flag."""
        words = shlex.split(self.command)
        return words[words.index("--settings") + 1] if "--settings" in words else ""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings given to the command."""
        return settings_given(self.given) if self.given else {}

    @property
    def code(self) -> str:
        """The short commit of its code, with a mark if files were changed."""
        if "commit" not in self.record:
            return "commit not recorded"
        return f"commit {self.record['commit'][:12]}{' and changes on it' * self.record['changed_since_commit']}"


def jobs(folder: Path = Path()) -> dict[str, Job]:
    """The job behind each file that Snakemake made in a checkout, by the file's path relative to it."""
    kept = folder / KEPT
    found = {}
    for path in sorted(kept.rglob("*")) if kept.is_dir() else ():
        if path.is_file():
            name = "".join(part.removeprefix("@") for part in path.relative_to(kept).parts)
            output = base64.urlsafe_b64decode(name).decode()
            found[output] = _job(folder, output, read_json(path))
    return found


def _job(folder: Path, output: str, kept: Mapping[str, Any]) -> Job:
    log = next(iter(kept.get("log") or ()), "")
    record = recorded(folder / log) if log else {}
    model = folder / output
    if not record and model.name in MODEL_FILES and model.with_name("model.json").exists():
        # From the cache between workflows, which keeps no logs.
        record = read_json(model.with_name("model.json")).get("provenance", {})
    return Job(
        rule=str(kept.get("rule")),
        inputs=tuple(kept.get("input") or ()),
        log=log,
        command=kept.get("shellcmd") or "",
        started=float(kept.get("starttime") or 0),
        ended=float(kept.get("endtime") or 0),
        record=record,
    )

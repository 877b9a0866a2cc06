"""From what each result was made, as Snakemake keeps it beside the results and as the jobs wrote into their logs."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heads.provenance import recorded

KEPT = Path(".snakemake/metadata")
"""Where Snakemake keeps a file for each output, named by its path in base 64 for URLs, long names in parts after @."""


@dataclass(frozen=True)
class Job:
    """What made a file: rule, inputs, log, command (empty if it ran inside Snakemake), and when, in Unix seconds."""

    rule: str
    inputs: tuple[str, ...]
    log: str
    command: str
    started: float
    ended: float
    record: Mapping[str, Any] = field(hash=False)

    @property
    def code(self) -> str:
        """The commit of its code in short, marked if files were changed."""
        if "commit" not in self.record:
            return "commit not recorded"
        return f"commit {self.record['commit'][:12]}{' and changes on it' * self.record['changed_since_commit']}"


def jobs(folder: Path = Path()) -> dict[str, Job]:
    """The job behind each file that Snakemake made in a checkout, by the file's path from there."""
    kept = folder / KEPT
    found = {}
    for path in sorted(kept.rglob("*")) if kept.is_dir() else ():
        if path.is_file():
            name = "".join(part.removeprefix("@") for part in path.relative_to(kept).parts)
            found[base64.urlsafe_b64decode(name).decode()] = _job(folder, json.loads(path.read_text(encoding="utf-8")))
    return found


def _job(folder: Path, kept: Mapping[str, Any]) -> Job:
    log = next(iter(kept.get("log") or ()), "")
    return Job(
        rule=str(kept.get("rule")),
        inputs=tuple(kept.get("input") or ()),
        log=log,
        command=kept.get("shellcmd") or "",
        started=float(kept.get("starttime") or 0),
        ended=float(kept.get("endtime") or 0),
        record=recorded(folder / log) if log else {},
    )


def ancestors(path: str, made: Mapping[str, Job]) -> Iterator[tuple[str, Job | None]]:
    """All files behind a file, each once and the nearest first, with their jobs; None for what no job made."""
    waiting, seen = list(_inputs(path, made)), set()
    while waiting:
        name = waiting.pop(0)
        if name not in seen:
            seen.add(name)
            yield name, made.get(name)
            waiting += _inputs(name, made)


def _inputs(path: str, made: Mapping[str, Job]) -> Iterable[str]:
    return made[path].inputs if path in made else ()


def changed_after(path: str, made: Mapping[str, Job], folder: Path = Path()) -> list[str]:
    """Inputs of a file that are younger than it, or gone."""
    own = (folder / path).stat().st_mtime
    inputs = {name: folder / name for name in _inputs(path, made)}
    return [name for name, at in inputs.items() if not at.exists() or at.stat().st_mtime > own]

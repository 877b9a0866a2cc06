"""From what each result was made, as Snakemake keeps it beside the results and as the jobs wrote into their logs."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heads.base.files import read_json
from heads.base.provenance import recorded

KEPT = Path(".snakemake/metadata")
"""Where Snakemake keeps a file for each output, named by its path in base 64 for URLs, long names in parts after @."""

MODEL_FILES = ("model.safetensors", "model.json")


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
    """Of the files behind a file, those that are younger than what was made of them, or gone."""
    changed = []
    for name in [path, *(name for name, _ in ancestors(path, made))]:
        if (folder / name).exists():
            own = (folder / name).stat().st_mtime
            inputs = {behind: folder / behind for behind in _inputs(name, made)}
            changed += [behind for behind, at in inputs.items() if not at.exists() or at.stat().st_mtime > own]
    return list(dict.fromkeys(changed))

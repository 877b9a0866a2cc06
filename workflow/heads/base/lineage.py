"""What each result was made from, as recorded by Snakemake beside the results and by the jobs in their logs."""

from __future__ import annotations

import base64
import shlex
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from heads.base.files import read_json, settings_given
from heads.base.provenance import PACKAGES, recorded

KEPT = Path(".snakemake/metadata")
"""Where Snakemake keeps a file for each output, named by its path in URL-safe base 64, long names in parts with @."""

MODEL_FILES = ("model.safetensors", "model.json")

SHOWN = 4
"""How many of a rule's seeds, devices or files are named; the rest are only counted."""


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


def ancestors(path: str, made: Mapping[str, Job]) -> Iterator[tuple[str, Job | None]]:
    """All files behind a file, each once and the nearest first, with the job that made it or None."""
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
    """The files behind a file that are newer than what was made from them, or missing."""
    changed = []
    for name in [path, *(name for name, _ in ancestors(path, made))]:
        if (folder / name).exists():
            own = (folder / name).stat().st_mtime
            inputs = {behind: folder / behind for behind in _inputs(name, made)}
            changed += [behind for behind, at in inputs.items() if not at.exists() or at.stat().st_mtime > own]
    return list(dict.fromkeys(changed))


def story(path: str, made: dict[str, Job]) -> list[str]:
    """The lines that tell a person how a job made a file."""
    job, behind = made[path], list(ancestors(path, made))
    lines = [path, *(f"  {name:9}{value}" for name, value in own(job)), ""]
    lines += ["made of, the nearest first (rule, files, code, device, seeds)"]
    rules: dict[str, list[tuple[str, Job]]] = defaultdict(list)
    for name, maker in behind:
        if maker is not None:
            rules[maker.rule].append((name, maker))
    lines += [f"  {rule:16}{summary(files)}" for rule, files in rules.items()]
    given = [name for name, maker in behind if maker is None]
    lines += [f"  {'no rule':16}{few(given)}"] if given else []
    return [*lines, *warnings(path, made, [job, *(maker for _, maker in behind if maker)])]


def own(job: Job) -> Iterable[tuple[str, str]]:
    """What is known about the job that made the file, as pairs of label and text."""
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(job.ended))
    yield "made", f"{moment} in {job.ended - job.started:.0f} s by the rule {job.rule}"
    yield "code", job.code
    yield "with", ", ".join(f"{name} {job.record[name]}" for name in ("python", *PACKAGES) if name in job.record)
    yield "on", ", ".join(str(job.record[name]) for name in ("device", "processor", "machine") if name in job.record)
    yield "seed", str(job.record.get("seed", "none of its own"))
    settings = yaml.safe_dump(job.settings, sort_keys=False).splitlines() if job.settings else []
    yield from (("" if place else "settings", line) for place, line in enumerate(settings))
    yield "command", job.command or "inside Snakemake"
    yield "log", job.log or "none"


def summary(files: Sequence[tuple[str, Job]]) -> str:
    """A rule's part in a story, on one line."""
    makers = [job for _, job in files]
    names = [name for name, _ in files]
    parts = [few(names), *sorted({job.code for job in makers if "commit" in job.record})]
    devices = sorted({str(job.record["device"]) for job in makers if "device" in job.record})
    seeds = sorted({int(job.record["seed"]) for job in makers if "seed" in job.record})
    parts += [few(devices)] if devices else []
    parts += [f"seed {few([str(seed) for seed in seeds])}"] if seeds else []
    return "; ".join(parts)


def few(words: Sequence[str]) -> str:
    """The first few of some words, and how many more there are."""
    rest = len(words) - SHOWN
    return ", ".join(words[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def warnings(path: str, made: dict[str, Job], behind: Sequence[Job]) -> list[str]:
    """What a reader should know before trusting the file."""
    found = []
    if changed := changed_after(path, made):
        found.append(f"changed since it was made, or gone: {few(changed)}")
    codes = sorted({job.code for job in behind if "commit" in job.record})
    if len(codes) > 1:
        found.append(f"made by different states of the code: {few(codes)}")
    if any(job.record.get("changed_since_commit") for job in behind):
        found.append("made by code that is in no commit")
    return ["", *(f"note: {line}" for line in found)] if found else []

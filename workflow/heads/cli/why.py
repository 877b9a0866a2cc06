"""Tell from what a result was made: code, versions, device, seed, settings, and all files and jobs behind it."""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from heads.base.files import UserError, read_yaml
from heads.base.lineage import Job, ancestors, changed_after, jobs
from heads.base.provenance import PACKAGES

SHOWN = 4
"""How many of a rule's seeds, devices or files are named before the rest is only counted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads why`."""
    parser.add_argument("file", help="a file below results/; the command is given in the folder that Snakemake ran in")


def run(arguments: argparse.Namespace) -> None:
    """Print the story of one file."""
    if not arguments.file or not Path(arguments.file).exists():
        raise UserError(f"{arguments.file!r} does not exist: give a file below results/.")
    made = jobs()
    given = Path(os.path.relpath(arguments.file))
    # What lies in a folder that was made as a whole was made with it.
    path = next((str(place) for place in (given, *given.parents) if str(place) in made), None)
    if path is None:
        raise UserError(f"{given} was made by no job that Snakemake remembers here: give one of its results.")
    print("\n".join(story(path, made)))


def story(path: str, made: dict[str, Job]) -> list[str]:
    """The lines that are printed."""
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
    """What is known of the job that made the file."""
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(job.ended))
    yield "made", f"{moment} in {job.ended - job.started:.0f} s by the rule {job.rule}"
    yield "code", job.code
    yield "with", ", ".join(f"{name} {job.record[name]}" for name in ("python", *PACKAGES) if name in job.record)
    yield "on", ", ".join(str(job.record[name]) for name in ("device", "machine") if name in job.record)
    yield "seed", str(job.record.get("seed", "none of its own"))
    for path in (name for name in job.inputs if "/settings/" in name and Path(name).exists()):
        yield "settings", path
        yield from (("", line) for line in yaml.safe_dump(read_yaml(Path(path)), sort_keys=False).splitlines())
    yield "command", job.command or "inside Snakemake"
    yield "log", job.log or "none"


def summary(files: Sequence[tuple[str, Job]]) -> str:
    """A rule's part in a story on one line."""
    makers = [job for _, job in files]
    names = [name for name, _ in files]
    settings = makers[0].rule.endswith("settings")
    parts = [
        ", ".join(names) if settings else few(names),
        *sorted({job.code for job in makers if "commit" in job.record}),
    ]
    devices = sorted({str(job.record["device"]) for job in makers if "device" in job.record})
    seeds = sorted({int(job.record["seed"]) for job in makers if "seed" in job.record})
    parts += [few(devices)] if devices else []
    parts += [f"seed {few([str(seed) for seed in seeds])}"] if seeds else []
    return "; ".join(parts)


def few(words: Sequence[str]) -> str:
    """The first of some words, and how many more there are."""
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
        found.append("made by code that stands in no commit")
    return ["", *(f"note: {line}" for line in found)] if found else []

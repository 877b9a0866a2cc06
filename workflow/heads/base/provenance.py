"""Which code made a file: the commit, whether it was changed since, and the versions that matter.

Every job ends its log with a line of this; `python -m heads why FILE` finds it again.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "sentencepiece", "sacrebleu", "numpy")
MARK = "provenance: "
COMMIT = "HEADS_COMMIT"
"""The variable of the environment that names the commit where code was copied without its history; `+` if changed."""


def provenance() -> dict[str, Any]:
    """Commit of the code with a flag for uncommitted changes, and the versions of Python and key packages."""
    given = os.environ.get(COMMIT, "")
    commit = given.removesuffix("+") or _git("rev-parse", "HEAD") or "unknown"
    changed = given.endswith("+") if given else bool(_git("status", "--porcelain", "--untracked-files=no"))
    return {
        "commit": commit,
        "changed_since_commit": changed,
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def made_by(
    *, seed: int | None = None, device: str | None = None, threads: int | None = None, processes: int | None = None
) -> dict[str, Any]:
    """The code and versions of a job, its machine, and which of these it had; None for what it has not."""
    had = {"seed": seed, "device": device, "threads": threads, "processes": processes}
    known = {name: value for name, value in had.items() if value is not None}
    return {**provenance(), **machine(), **known}


def machine() -> dict[str, Any]:
    """Kind of machine, the name of its processor and how many cores it has."""
    try:
        facts = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        facts = ""
    named = re.search(r"^model name\s*: *(.+)$", facts, re.MULTILINE)
    name = named[1].strip() if named else platform.processor() or "unknown"
    return {"machine": platform.machine(), "processor": name, "cores": os.cpu_count() or 1}


def record(**had: Any) -> str:
    """A line for the log of a job that ended well; of what `made_by` takes."""
    return MARK + json.dumps(made_by(**had))


def recorded(log: Path) -> dict[str, Any]:
    """What `record` wrote last into a log; empty where there is none."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    marked = [line for line in lines if line.startswith(MARK)]
    return dict(json.loads(marked[-1].removeprefix(MARK))) if marked else {}


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""

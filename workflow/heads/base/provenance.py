"""Which code made a file: the commit, whether it was changed since, key versions. Every job ends its log with that."""

import json
import os
import platform
import re
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "sentencepiece", "sacrebleu", "numpy")
MARK = "provenance: "
COMMIT = "HEADS_COMMIT"
"""The environment variable that names the commit if the code was copied without its history; `+` if changed."""


def provenance() -> dict[str, Any]:
    """Commit of the code with a flag for uncommitted changes, and the versions of Python and key packages."""
    given = os.environ.get(COMMIT, "")
    commit = given.removesuffix("+") or _git("rev-parse", "HEAD") or "unknown"
    changed = given.endswith("+") if given else bool(_git("status", "--porcelain", "--untracked-files=no"))
    return {
        "commit": commit,
        "changed_since_commit": changed,
        "python": platform.python_version(),
        **_versions(),
    }


@cache
def _versions() -> dict[str, str]:
    # Looked up once: that takes milliseconds, and a stage may write many models.
    return {package: version(package) for package in PACKAGES}


def made_by(
    *, seed: int | None = None, device: str | None = None, threads: int | None = None, processes: int | None = None
) -> dict[str, Any]:
    """The code, versions and machine of a job, and its seed, device, threads and processes unless they are None."""
    had = {"seed": seed, "device": device, "threads": threads, "processes": processes}
    known = {name: value for name, value in had.items() if value is not None}
    return {**provenance(), **machine(), **known}


def machine() -> dict[str, Any]:
    """Kind of machine, the name of its processor and its number of cores."""
    try:
        facts = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        facts = ""
    named = re.search(r"^model name\s*: *(.+)$", facts, re.MULTILINE)
    name = named[1].strip() if named else platform.processor() or "unknown"
    return {"machine": platform.machine(), "processor": name, "cores": os.cpu_count() or 1}


def record(**had: Any) -> str:
    """The log line of a job that succeeded; the arguments are those of `made_by`."""
    return MARK + json.dumps(made_by(**had))


def recorded(log: Path) -> dict[str, Any]:
    """What `record` last wrote into a log; empty if there is nothing."""
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

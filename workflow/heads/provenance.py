"""Which code made a file: the commit, whether it was changed since, and the versions that matter."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "sentencepiece", "sacrebleu", "numpy")


def provenance() -> dict[str, Any]:
    """Commit of the code with a flag for uncommitted changes, and the versions of Python and key packages."""
    return {
        "commit": _git("rev-parse", "HEAD") or "unknown",
        "changed_since_commit": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""

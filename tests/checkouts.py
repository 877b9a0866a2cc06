"""A separate checkout for workflow tests: the files of a clone, with Snakemake run in them as a user would."""

import json
import os
import shutil
import signal
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from heads.config import settings
from warm_python import warm_python

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
"""The documents for readers: the README and the pages under docs/."""


def documents() -> str:
    """The text of all documents."""
    return "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)


def configuration(folder: Path = ROOT) -> dict[str, Any]:
    """All settings of a checkout, which a test may change."""
    content: dict[str, Any] = json.loads(_own() if folder == ROOT else json.dumps(settings.configuration(folder)))
    return content


@cache
def _own() -> str:
    """The settings of this one, read once; as text, no objects are shared through YAML anchors."""
    return json.dumps(settings.configuration(ROOT))


PARTS = ("Snakefile", "config.yaml", "config", "workflow", "profiles", "envs")
TINY = Path(__file__).parent / "workflow/tiny.yaml"
SECONDS = 3000
"""Seconds after which Snakemake counts as hung; the tiny experiment takes two minutes on two idle cores."""


def checkout(folder: Path) -> Path:
    """Copy the files of a Git clone into `folder`."""
    for part in PARTS:
        source = ROOT / part
        ignore = shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=ignore)
        else:
            shutil.copy(source, folder / part)
    return folder


def snakemake(folder: Path, *words: str, hashes: str = "random") -> subprocess.CompletedProcess[str]:
    """Run Snakemake in a checkout and return its output, standard error included.

    It and its jobs are forked from a Python that has already imported what they need and has this hash seed (see
    `warm_python`). If it hangs, it is killed with all its child processes, and the test fails.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [warm_python(hashes), "-m", "snakemake", *words]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, said)

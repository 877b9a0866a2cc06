"""GPUs are handed out to one job at a time, and come back when the job is gone, however it ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from checkouts import ROOT
from heads.devices import claim

CLAIM = """
import sys
from pathlib import Path
from heads.devices import claim
print(claim(["first", "second"], Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def claiming(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """A process that claims one of two GPUs and lives on, and what it got."""
    job = subprocess.Popen(
        [sys.executable, "-c", CLAIM, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(ROOT / "workflow")},
    )
    assert job.stdout is not None
    return job, job.stdout.readline().strip()


def test_two_jobs_never_take_the_same_gpu_and_a_killed_one_gives_it_back(tmp_path: Path) -> None:
    jobs = [claiming(tmp_path) for _ in range(3)]
    try:
        assert [got for _, got in jobs] == ["0", "1", "None"]
        jobs[0][0].kill()
        jobs[0][0].wait()
        jobs.append(claiming(tmp_path))
        assert jobs[-1][1] == "0"
    finally:
        for job, _ in jobs:
            job.kill()
            job.wait()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_one_process_that_asks_again_gets_another_one_until_there_is_none(count: int, tmp_path: Path) -> None:
    names = [f"gpu {number}" for number in range(count)]
    assert [claim(names, tmp_path) for _ in range(count + 1)] == [*range(count), None]

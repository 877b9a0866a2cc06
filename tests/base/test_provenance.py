"""What a job records of itself: the code, the machine, and what it was told."""

import platform
import subprocess
from pathlib import Path

import pytest

from heads.base.files import write_text
from heads.base.provenance import COMMIT, MARK, PACKAGES, machine, provenance, record, recorded


@pytest.mark.parametrize(("told", "changed"), [("a" * 40, False), ("a" * 40 + "+", True)])
def test_code_that_was_copied_without_its_history_is_told_its_commit(
    monkeypatch: pytest.MonkeyPatch, told: str, *, changed: bool
) -> None:
    monkeypatch.setenv(COMMIT, told)
    made_by = provenance()
    assert (made_by["commit"], made_by["changed_since_commit"]) == ("a" * 40, changed)
    monkeypatch.delenv(COMMIT)
    monkeypatch.setattr("heads.base.provenance._git", lambda *_: "")
    assert (provenance()["commit"], provenance()["changed_since_commit"]) == ("unknown", False)


def test_the_line_that_a_job_leaves_in_its_log_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit is that of Git, which other tests do not ask."""
    monkeypatch.delenv(COMMIT)
    line = record(seed=3, device="cpu", threads=2, processes=None)
    write_text(tmp_path / "log", f"{MARK}{{}}\nwords\n{line}\n")
    found = recorded(tmp_path / "log")
    assert found == {**provenance(), **machine(), "seed": 3, "device": "cpu", "threads": 2}
    assert set(PACKAGES) < set(found) and len(found["commit"]) == 40
    assert recorded(tmp_path / "none") == {}


def test_a_machine_is_told_by_its_processor_and_its_cores() -> None:
    found = machine()
    said = subprocess.run(["grep", "-c", "^processor", "/proc/cpuinfo"], capture_output=True, text=True, timeout=60)
    assert not said.stdout or found["cores"] == int(said.stdout)
    assert found["machine"] == platform.machine() and len(found["processor"]) > 2
    assert ":" not in found["processor"] and found["processor"] == found["processor"].strip()

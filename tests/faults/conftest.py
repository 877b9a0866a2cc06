"""Fixtures of the fault tests: the server of processes, a prepared corpus, and an undisturbed training."""

from __future__ import annotations

from pathlib import Path

import pytest
import workshop
from workshop import Command, prepare, training_words


@pytest.fixture(scope="session", autouse=True)
def server() -> None:
    """Start the server of processes with torch loaded."""
    workshop.start_server()


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `results` before the first training; tests may only read or copy it."""
    folder = tmp_path_factory.mktemp("prepared") / "results"
    prepare(folder)
    return folder


@pytest.fixture(scope="session")
def undisturbed(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a baseline trained without interruption."""
    folder = tmp_path_factory.mktemp("undisturbed")
    status, said = Command(training_words("baseline", results, folder / "run"), folder / "said.txt").end()
    assert status == 0, said
    return folder / "run"

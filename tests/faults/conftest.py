"""Fixtures of the fault tests: the server of processes, a prepared corpus, and an undisturbed training."""

import os
import sys
from multiprocessing import forkserver
from pathlib import Path

import pytest
from workshop import CONTEXT, Command, prepare, training_words


@pytest.fixture(scope="session", autouse=True)
def server() -> None:
    """Start the server of processes, which loads the workshop and torch once; it ends with its owner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        patch.setenv("OMP_NUM_THREADS", "1")
        CONTEXT.set_forkserver_preload(["workshop"])
        forkserver.ensure_running()


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

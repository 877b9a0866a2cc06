"""What several commands are tested with: the experiment with known answers."""

from pathlib import Path

import pytest

from known_experiment import Known, write_known
from known_trainings import Train


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """The experiment on disk, for all tests of a file."""
    return write_known(tmp_path_factory.mktemp("results") / "known")


@pytest.fixture
def train(known: Known, tmp_path: Path) -> Train:
    """Runs training commands on it."""
    return Train(known, tmp_path)

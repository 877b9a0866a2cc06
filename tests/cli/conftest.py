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
def train(known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    """Runs training commands on it, without the call to Git in each, to save time."""
    monkeypatch.setattr("heads.base.provenance._git", lambda *_: "c" * 40)
    return Train(known, tmp_path)

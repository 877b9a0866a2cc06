"""A tiny model to inspect and to prune, exported as its users get it, with a text of sentences that it knows."""

from pathlib import Path

import pytest

from heads.analysis.speed import rounds
from heads.base.files import write_lines
from heads.interop.bundle import saved_bundle
from heads.interop.export import export
from heads.one_model import costs
from many_lines import LINES
from model_folders import Experiment, write_experiment


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return write_experiment(tmp_path_factory.mktemp("results") / "tiny")


@pytest.fixture
def model(experiment: Experiment, tmp_path: Path) -> Path:
    """The folder of the model; the text, each of its lines twice, is beside it."""
    export(saved_bundle(experiment.baseline), tmp_path / "model")
    write_lines(tmp_path / "text.en", LINES * 2)
    return tmp_path / "model"


@pytest.fixture
def briefly_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are timed on few sentences and once, after the round in which all is new, as no test can look at times."""
    monkeypatch.setattr(costs, "FEW", 2)
    monkeypatch.setattr(costs, "MANY", 4)
    monkeypatch.setattr(costs, "rounds", lambda work, number, clock: rounds(work, min(number, 2), clock))

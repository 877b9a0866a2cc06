"""A tiny model to inspect and to prune, exported as its users get it, with a text of sentences that it knows."""

from pathlib import Path

import pytest

from heads.base.files import write_lines
from heads.interop.bundle import saved_bundle
from heads.interop.export import export
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

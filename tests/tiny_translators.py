"""Models and folders that several tests of translation and of third-party models translate with."""

from collections.abc import Callable
from typing import Any

import pytest

from heads.model.transformer import Transformer
from heads.text.special_ids import EOS
from model_folders import Experiment, write_experiment


@pytest.fixture
def talker(tiny_model: Callable[..., Transformer]) -> Callable[..., Transformer]:
    """Builds a model with confident predictions that ends its sentences more or less readily."""

    def build(*, eos: float, seed: int = 1, subwords: int = 11, **changes: Any) -> Transformer:
        model = tiny_model(seed=seed, target_subwords=subwords, **changes)
        model.projection.weight.data *= 2
        model.projection.bias.data[EOS] += eos
        return model

    return build


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """A tiny experiment, which a test leaves as it is."""
    return write_experiment(tmp_path_factory.mktemp("results") / "tiny")

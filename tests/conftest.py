"""Tiny fixtures for many tests: a model whose sizes all differ, a batch, settings, and a task (reversing digits).

B 2 sentences, S 5 source and T 4 target positions, H 3 heads of E 2 dimensions, D 10 width, 7 feed-forward units,
13 source and 11 target subwords, 2 layers.
"""

import gc
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch

from heads.base.provenance import COMMIT
from heads.config.trainings import HardConcrete, LengthSettings, TrainingSettings
from heads.model.shape import ModelShape, full_heads
from heads.model.transformer import Transformer
from heads.pruning.gates import HardConcreteGates
from heads.pruning.penalty import Penalty
from heads.text.batches import Batch, Pairs, make_batch
from heads.text.packed import Packed, pack
from heads.text.vocabulary import Tokens
from heads.training.loop import Training
from heads.training.schedule import Pruning, TrainingPlan
from last_words import pytest_sessionfinish  # noqa: F401 - a hook
from shape_facts import SIZES

LONG = ("slurm", "workflow", "faults")
LONG_SECONDS = 3600
"""Time limit of a test with its shared fixtures, such as a run of the whole workflow on a busy machine."""
GARBAGE = 50_000
"""Number of new objects after which garbage is collected."""
FIRST_FREE = 4
"""The first subword id that is not a special token (padding, start, end, unknown)."""


def pytest_configure() -> None:
    """Use one thread per test process by default: with two, processes that run in parallel take many times as long.

    The commit is told, so that not every model that is written asks Git for it. Nor does every file wait for the disk:
    that is for a loss of power, which no test has, and takes milliseconds each.
    """
    os.environ.setdefault(COMMIT, "c" * 40)
    os.fsync = lambda fd: None
    torch.set_num_threads(int(os.environ.setdefault("OMP_NUM_THREADS", "1")))
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage from now on, but rarely, and not in what was imported, which takes a tenth of all the time."""
    gc.freeze()
    gc.set_threshold(GARBAGE)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take minutes first, so that no core is idle at the end, and raise their time limit."""
    items.sort(key=lambda item: (*LONG, item.path.parent.name).index(item.path.parent.name))
    for item in items:
        if item.path.parent.name in LONG:
            item.add_marker(pytest.mark.timeout(LONG_SECONDS))


@pytest.fixture(scope="session")
def tiny_shape() -> Callable[..., ModelShape]:
    """Builds a shape; keywords replace its values."""

    def build(**changes: Any) -> ModelShape:
        return ModelShape(**{**SIZES, "live_heads": full_heads(layers=2, heads=3), **changes})

    return build


@pytest.fixture(scope="session")
def tiny_model(tiny_shape: Callable[..., ModelShape]) -> Callable[..., Transformer]:
    """Builds a float64 model in evaluation mode in which no weight, bias or norm is left at zero or one."""

    def build(*, seed: int = 1, **changes: Any) -> Transformer:
        torch.manual_seed(seed)
        model = Transformer(tiny_shape(**changes)).double().eval()
        generator = torch.Generator().manual_seed(seed)
        for value in model.parameters():
            noise = torch.randn(value.shape, generator=generator, dtype=torch.float64)
            value.data += 0.3 * noise
        return model

    return build


TINY_TEXT = (
    [np.array([5, 12, 7, 4], np.int32), np.array([9, 6], np.int32)],
    [np.array([10, 4, 8], np.int32), np.array([6], np.int32)],
)


@pytest.fixture
def tiny_batch() -> Batch:
    """Sentences of 4 and 2 source subwords and 3 and 1 target subwords, each with its start or end and padded."""
    return make_batch(*TINY_TEXT)


@pytest.fixture
def tiny_packed() -> Packed:
    """The same sentences without padding."""
    return pack(*TINY_TEXT)


@pytest.fixture(scope="session")
def hard_concrete() -> HardConcrete:
    """The authors' distribution."""
    return HardConcrete(temperature=0.33, low=-0.1, high=1.1, log_alpha_init=2.0)


@pytest.fixture(scope="session")
def lopsided() -> HardConcrete:
    """A distribution whose two ends differ, so that a swapped sign or end shows."""
    return HardConcrete(temperature=0.7, low=-0.3, high=1.2, log_alpha_init=0.5)


@pytest.fixture(scope="session")
def training_settings() -> Callable[..., TrainingSettings]:
    """Builds settings of a training with the papers' loss and optimiser; keywords replace values."""

    def build(**changes: Any) -> TrainingSettings:
        values = {
            "batch_tokens": 40,
            "micro_batch_tokens": 40,
            "max_subwords": 20,
            "warmup_updates": 10,
            "precision": "fp32",
            "evaluate_every": 1000,
            "dev_bleu_sentences": 0,
        }
        return TrainingSettings(**{**values, **changes})

    return build


@pytest.fixture(scope="session")
def length() -> Callable[..., LengthSettings]:
    """Builds the length of a training; keywords replace values."""

    def build(**changes: Any) -> LengthSettings:
        return LengthSettings(**{"updates": 5, "patience": 0, "average_last": 1, "average_every": 100, **changes})

    return build


@pytest.fixture(scope="session")
def digit_pairs() -> Callable[..., Pairs]:
    """Builds pairs in which the target is the source backwards, both random digits."""

    def build(*, count: int, shortest: int = 2, longest: int = 6, seed: int = 3, digits: int = 7) -> Pairs:
        generator = np.random.default_rng(seed)
        lengths = generator.integers(shortest, longest + 1, count)
        sources = [generator.integers(FIRST_FREE, FIRST_FREE + digits, n).astype(np.int32) for n in lengths]
        source, target = (Tokens.of(np.concatenate(s), lengths) for s in (sources, [s[::-1] for s in sources]))
        return Pairs(source, target, max_subwords=longest)

    return build


@pytest.fixture(scope="session")
def new_training(
    tiny_shape: Callable[..., ModelShape],
    training_settings: Callable[..., TrainingSettings],
    length: Callable[..., LengthSettings],
    digit_pairs: Callable[..., Pairs],
    lopsided: HardConcrete,
) -> Callable[..., Training]:
    """Builds a training of a tiny float32 model on reversed digits, the same for the same arguments.

    scope and lam: these add gates, which learn all the time or for learning_updates; dropout, model, plan:
    changes to the model and to LengthSettings; all other keywords replace settings of the training.
    """

    def build(
        *,
        scope: str | None = None,
        lam: float = 0.0,
        dropout: float = 0.0,
        plan: Mapping[str, int] = MappingProxyType({}),
        learning_updates: int | None = None,
        updates_before: int = 0,
        model: Mapping[str, Any] = MappingProxyType({}),
        **changes: Any,
    ) -> Training:
        torch.manual_seed(5)
        built = Transformer(tiny_shape(dropout=dropout, attention_dropout=dropout, **model))
        pruning = None
        if scope:
            gates, penalty = HardConcreteGates(built.shape, scope, lopsided), Penalty(torch.tensor([lam]))
            learning = length(**plan).updates if learning_updates is None else learning_updates
            pruning = Pruning(gates, penalty, learning_rate=0.05, record_every=3, updates=learning, frozen=())
        settings = training_settings(**changes)
        whole = TrainingPlan(
            settings, length(**plan), seed=7, updates_before=updates_before, device=torch.device("cpu")
        )
        return Training(built, digit_pairs(count=60), whole, pruning)

    return build

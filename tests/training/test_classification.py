"""Classifiers in the common training loop: loss by its definition, nothing frozen, killed and resumed, evaluated."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heads.config.trainings import HardConcrete, LengthSettings, TrainingSettings
from heads.model.folder import model_of
from heads.model.shape import ModelShape, full_heads
from heads.pruning.gates import HardConcreteGates
from heads.pruning.penalty import Penalty
from heads.text.batches import Pairs, pairs_of, read_tokens
from heads.text.special_ids import PAD
from heads.text.vocabulary import Vocabulary
from heads.training.checkpointing import UnfinishedFolder
from heads.training.evaluation import classification
from heads.training.job import frozen_beside
from heads.training.loop import Training, train
from heads.training.optimizers import hidden_matrices
from heads.training.schedule import Pruning, TrainingPlan
from killed_trainings import Killed, assert_same, killed
from slow_ones import slow_but
from tiny_examples import write_examples

New = Callable[..., Training]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def bpe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the bpe stage of a tiny experiment."""
    return write_examples(tmp_path_factory.mktemp("examples"))


@pytest.fixture
def new_training(
    bpe: Path,
    tiny_shape: Callable[..., ModelShape],
    training_settings: Callable[..., TrainingSettings],
    length: Callable[..., LengthSettings],
    lopsided: HardConcrete,
) -> New:
    """Builds a training of a tiny float32 classifier; lam: gates on all heads; the rest: settings of the training."""

    def build(*, lam: float | None = None, updates: int = 9, dropout: float = 0.3, **changes: Any) -> Training:
        torch.manual_seed(5)
        subwords = len(Vocabulary(bpe / "source.model"))
        own = {"labels": 3, "target_subwords": 3, "token_types": 2, "source_subwords": subwords, "dropout": dropout}
        model = model_of(tiny_shape(**own, live_heads=full_heads(layers=2, heads=3, kinds=("enc_self",))))
        pruning = None
        if lam is not None:
            gates = HardConcreteGates(model.shape, "all", lopsided)
            pruning = Pruning(gates, Penalty(torch.tensor([lam])), 0.05, 3, updates, frozen_beside("all", model))
        settings = training_settings(**{"batch_tokens": 120, "micro_batch_tokens": 50, "max_subwords": 40, **changes})
        plan = TrainingPlan(settings, length(updates=updates), seed=7, updates_before=0, device=CPU)
        return Training(model, pairs_of(*read_tokens(bpe, "train"), 40, labelled=True), plan, pruning)

    return build


def by_definition(training: Training, pairs: Pairs, member: int, smoothing: float) -> tuple[float, bool]:
    """Cross-entropy in nats of one example, and whether its label is the likeliest."""
    model, label = training.model.eval(), int(pairs.target[member][0])
    ids = torch.tensor(pairs.source[member].astype(np.int64))[None]
    with torch.no_grad():
        logits = model.projection(model(ids, ids != PAD, None))[0, 0].double()
    chances = (logits - logits.logsumexp(0)).tolist()
    wanted = [(1 - smoothing) * (place == label) + smoothing / 3 for place in range(3)]
    return -sum(share * chance for share, chance in zip(wanted, chances, strict=True)), chances.index(
        max(chances)
    ) == label


def test_the_loss_is_the_mean_over_examples_of_the_smoothed_cross_entropy_of_their_label(new_training: New) -> None:
    training = new_training(dropout=0.0)
    members = np.arange(11)
    expected = np.mean([by_definition(training, training.pairs, member, 0.1)[0] for member in range(11)])
    assert float(training.step(members)["loss"]) == pytest.approx(expected, rel=1e-5)


def test_dev_loss_and_accuracy_are_means_over_examples(new_training: New, bpe: Path) -> None:
    training = new_training(dropout=0.0)
    dev = pairs_of(*read_tokens(bpe, "dev"), 40, labelled=True)
    scores = classification(dev, training.plan.training, CPU, training.model.eval(), None)
    losses, right = zip(*(by_definition(training, dev, member, 0.0) for member in range(13)), strict=True)
    assert scores["dev_loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    assert scores["dev_accuracy"] == round(100 * np.mean(right), 2)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_every_weight_of_a_classifier_learns_beside_gates(new_training: New, optimizer: str) -> None:
    training = new_training(lam=0.1, optimizer=optimizer)
    before = {name: value.clone() for name, value in training.model.named_parameters()}
    for _ in range(3):
        training.step(np.arange(20))
    unchanged = [name for name, value in training.model.named_parameters() if torch.equal(value, before[name])]
    assert not unchanged
    muons = {id(matrix) for matrix in hidden_matrices(training.model)}
    told = {name for name, value in training.model.named_parameters() if id(value) in muons}
    assert told == {name for name in before if name.startswith("encoder.") and before[name].dim() == 2}


def test_a_classifier_learns_what_a_word_tells(new_training: New, bpe: Path) -> None:
    training = new_training(updates=60, dropout=0.0)
    dev = pairs_of(*read_tokens(bpe, "dev"), 40, labelled=True)
    for members, batches in training.prepared(0):
        training.step(members, batches)
        if training.update == 60:
            break
    found = classification(dev, training.plan.training, CPU, training.model.eval(), None)
    assert found["dev_accuracy"] > 90 and found["dev_loss"] < 0.7 * math.log(3)


@pytest.mark.parametrize("kill", slow_but([6], [2, 6]))
def test_a_killed_classifier_ends_as_if_nothing_had_happened(
    new_training: New, bpe: Path, tmp_path: Path, kill: int
) -> None:
    dev = pairs_of(*read_tokens(bpe, "dev"), 40, labelled=True)

    def run(training: Training, folder: Path) -> dict[str, Any]:
        evaluate = partial(classification, dev, training.plan.training, CPU)
        return train(training, evaluate, UnfinishedFolder(folder, "one", 0.0))

    whole = new_training(lam=0.1, evaluate_every=4)
    expected = run(whole, tmp_path / "whole")
    with pytest.raises(Killed):
        run(killed(new_training(lam=0.1, evaluate_every=4), kill), tmp_path / "killed")
    second = new_training(lam=0.1, evaluate_every=4)
    assert run(second, tmp_path / "killed") == expected
    assert_same(whole, second)

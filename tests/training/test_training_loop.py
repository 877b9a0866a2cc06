"""The loop's glue: the optimiser by its formula, the order of pairs, what is logged, and which states are averaged."""

import dataclasses
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_training import finished, gradients, parameters, scripted
from torch import Tensor

from heads.base.files import read_jsonl
from heads.model.encoder import Encoder
from heads.model.sublayers import Gates
from heads.text.batches import Batch
from heads.text.packed import Packed
from heads.training.checkpointing import UnfinishedFolder
from heads.training.loop import Row, Training, train

New = Callable[..., Training]


def learning(training: Training) -> dict[str, Tensor]:
    """The current trained weights and gates, in float64."""
    return {name: value.detach().double().clone() for name, value in parameters(training).items()}


def test_two_updates_are_those_of_adam_with_the_settings_constants_and_a_rate_for_each_part(new_training: New) -> None:
    """Kingma and Ba 2015, algorithm 1: nothing else, such as weight decay, changes the weights."""
    beta1, beta2, epsilon, updates_before = 0.7, 0.9, 0.02, 30
    training = new_training(
        scope="all", lam=0.3, updates_before=updates_before, learning_rate=0.632456,
        adam_beta1=beta1, adam_beta2=beta2, adam_epsilon=epsilon,
    )  # fmt: skip
    expected = learning(training)
    first, second = ({name: torch.zeros_like(value) for name, value in expected.items()} for _ in range(2))
    for t, members in enumerate((np.arange(9), np.arange(30, 36)), 1):
        training.step(members)
        found = gradients(training)
        for name, gradient in found.items():
            first[name] = beta1 * first[name] + (1 - beta1) * gradient
            second[name] = beta2 * second[name] + (1 - beta2) * gradient**2
            mean, square = first[name] / (1 - beta1**t), second[name] / (1 - beta2**t)
            rate = 0.05 if name.startswith("gates") else 2.0 * (updates_before + t) ** -0.5
            expected[name] = expected[name] - rate * mean / (square.sqrt() + epsilon)
        assert found.keys() == expected.keys()
    for name, value in learning(training).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-4, atol=2e-6, msg=name)


def test_lambda_is_added_once_an_update_however_many_micro_batches_and_sentences_it_has(new_training: New) -> None:
    """The penalty's slope does not depend on the batch, so lambda adds the same to the gradient for each."""
    added = []
    for members, micro_batch_tokens in ((np.arange(40), 1000), (np.arange(40), 12), (np.arange(3), 12)):
        pair = []
        for lam in (0.0, 0.6):
            training = new_training(scope="all", lam=lam, micro_batch_tokens=micro_batch_tokens)
            training.step(members)
            pair.append({name: value for name, value in gradients(training).items() if name.startswith("gates")})
        added.append({name: pair[1][name] - value for name, value in pair[0].items()})
    # lopsided, at its first log alpha of 0.5: P(gate > 0) is the logistic function at 0.5 + 0.7 log 4.
    chance = 1 / (1 + math.exp(-0.5 - 0.7 * math.log(4)))
    for each in added:
        assert len(each) == 6
        for value in each.values():
            torch.testing.assert_close(value, torch.full_like(value, 0.6 * chance * (1 - chance)), rtol=1e-3, atol=1e-6)


def test_all_micro_batches_of_an_update_have_the_same_gates_and_the_next_update_has_others(new_training: New) -> None:
    training = new_training(scope="all", micro_batch_tokens=12)
    seen, loss_sum = [], training.loss_sum

    def watching(batch: Batch | Packed, gates: Gates | None) -> Tensor:
        assert gates is not None
        seen.append([value for layers in gates.values() for gate in layers for value in gate.tolist()])
        return loss_sum(batch, gates)

    training.loss_sum = watching  # type: ignore[method-assign]
    training.step(np.arange(9))
    first = len(seen)
    training.step(np.arange(9))
    assert first == len(seen) - first > 2
    assert all(each == seen[0] for each in seen[:first]) and all(each == seen[-1] for each in seen[first:])
    assert seen[0] != seen[-1]


def taken(training: Training, updates: int, first: int = 0) -> list[list[int]]:
    """The pairs in the given number of updates."""
    return [members.tolist() for members, _ in zip(training.updates(first), range(updates), strict=False)]


def seeded(training: Training, seed: int) -> Training:
    """The same training with another seed."""
    plan = dataclasses.replace(training.plan, seed=seed)
    return Training(training.model, training.pairs, plan, training.pruning)


def test_every_epoch_has_every_pair_once_in_updates_of_its_own_and_so_has_every_seed(new_training: New) -> None:
    training = new_training(batch_tokens=30)
    size = len(training.pairs.epoch(30, 7, 0))
    seen = {}
    for seed in (7, 8):
        updates = taken(seeded(training, seed), 3 * size)
        for epoch in range(3):
            own = updates[epoch * size : (epoch + 1) * size]
            assert sorted(number for members in own for number in members) == list(range(60))
            seen[seed, epoch] = {frozenset(members) for members in own}
    for one, other in ((a, b) for a in seen for b in seen if a < b):
        assert len(seen[one] & seen[other]) < size / 2, f"{one} and {other} share most of their updates"


def test_updates_of_an_epoch_come_in_no_order_of_length(new_training: New) -> None:
    training = new_training(batch_tokens=30)
    size = len(training.pairs.epoch(30, 7, 0))
    for epoch in range(4):
        means = [training.pairs.source.lengths[members].mean() for members in taken(training, size, epoch * size)]
        rising, falling = (sum(sign * (b - a) > 0 for a, b in pairwise(means)) for sign in (1, -1))
        assert min(rising, falling) > 0.2 * size, "in order, there would be none of either"


def test_a_training_taken_up_at_any_update_of_any_epoch_has_the_pairs_that_would_have_come(new_training: New) -> None:
    training = new_training(batch_tokens=60)
    size = len(training.pairs.epoch(60, 7, 0))
    whole = taken(training, 3 * size + 2)
    for first in range(3 * size):
        assert taken(training, 2, first) == whole[first : first + 2]


def test_gates_are_drawn_from_the_seed_and_not_as_dropout_is(new_training: New) -> None:
    def drawn(training: Training) -> list[float]:
        assert training.pruning
        return [x for layers in training.pruning.gates.sampled(training.generator).values() for x in layers[0].tolist()]

    first, other, again = (drawn(seeded(new_training(scope="all"), seed)) for seed in (7, 8, 7))
    assert first == again != other
    training = seeded(new_training(scope="all"), 7)
    training.generator = torch.Generator().manual_seed(7)
    assert drawn(training) != first, "the stream that starts from the seed itself is dropout's"


def watched(training: Training) -> tuple[list[float], list[dict[str, Tensor]]]:
    """Losses and weights after each update, filled during the training."""
    losses, states, step = [0.0], [learning(training)], training.step

    def watching(*update: Any) -> Row:
        row = step(*update)
        losses.append(float(row["loss"]))
        states.append(learning(training))
        return row

    training.step = watching  # type: ignore[method-assign]
    return losses, states


def test_a_line_of_the_log_tells_the_mean_loss_since_the_line_before(new_training: New, tmp_path: Path) -> None:
    training = new_training(evaluate_every=3, plan={"updates": 8})
    losses, _ = watched(training)
    finished(training, tmp_path / "unfinished", [3.0, 2.5, 2.25, 9.0])
    log = read_jsonl(tmp_path / "unfinished" / "train.jsonl")
    assert [(row["update"], row["updates"], row["dev_loss"]) for row in log] == [(3, 8, 3.0), (6, 8, 2.5), (8, 8, 2.25)]
    for row, own in zip(log, (losses[1:4], losses[4:7], losses[7:]), strict=True):
        assert row["loss"] == pytest.approx(sum(own) / len(own))
    assert len(set(losses)) == 9


def test_the_weights_that_are_left_are_looked_at_once(new_training: New, tmp_path: Path) -> None:
    losses, plain = [3.0, 2.5, 2.25, 9.0], new_training(evaluate_every=3, plan={"updates": 8})
    assert finished(plain, tmp_path / "plain", losses)["dev_loss"] == 2.25
    # Neither averaged weights nor the last ones of a stopped training were evaluated before.
    averaging = new_training(evaluate_every=3, plan={"updates": 8, "average_last": 2, "average_every": 1})
    assert finished(averaging, tmp_path / "averaged", losses)["dev_loss"] == 9.0
    done = new_training(plan={"updates": 8})
    done.update = 8
    assert finished(done, tmp_path / "done", [4.0])["dev_loss"] == 4.0
    assert not done.model.training


@pytest.mark.parametrize(
    ("patience", "dev", "end", "averaged"),
    [
        (0, [1.0] * 6, 11, (6, 8, 10)),
        (1, [3.0, 2.0, 2.0, 9.0], 6, (2, 4, 6)),
        (1, [3.0, 2.0, 1.0, 1.5, 9.0], 8, (4, 6, 8)),
        (2, [2.0, 3.0, 2.5, 9.0], 6, (2, 4, 6)),
    ],
)
def test_the_last_states_are_averaged_also_after_an_early_stop(
    new_training: New, tmp_path: Path, patience: int, dev: list[float], end: int, averaged: tuple[int, ...]
) -> None:
    plan = {"updates": 11, "patience": patience, "average_last": 3, "average_every": 2}
    training = new_training(evaluate_every=2 if patience else 11, plan=plan)
    _, states = watched(training)
    facts = finished(training, tmp_path / "unfinished", dev)
    assert facts["updates"] == training.update == end
    for name, value in learning(training).items():
        mean = torch.stack([states[update][name] for update in averaged]).mean(0)
        torch.testing.assert_close(value, mean, rtol=1e-6, atol=1e-8, msg=name)
    assert any(not torch.equal(states[end][name], value) for name, value in learning(training).items())


@pytest.mark.parametrize(
    ("patience", "updates", "every", "last", "kept"),
    [
        (0, 11, 2, 3, [6, 8, 10]),
        (0, 12, 3, 2, [9, 12]),
        (0, 7, 4, 5, [4]),
        (0, 9, 1, 1, []),
        (3, 11, 2, 3, [2, 4, 6, 8, 10]),
    ],
)
def test_states_are_kept_from_the_first_on_that_may_be_averaged(
    new_training: New, tmp_path: Path, patience: int, updates: int, every: int, last: int, kept: list[int]
) -> None:
    class Watched(UnfinishedFolder):
        def snapshot(self, update: int, model: Encoder, keep: int) -> None:
            seen.append(update)
            super().snapshot(update, model, keep)

    seen: list[int] = []
    plan = {"updates": updates, "patience": patience, "average_last": last, "average_every": every}
    train(new_training(plan=plan), scripted([1.0] * 3), Watched(tmp_path / "unfinished", "one", 1e9))
    assert seen == kept


def test_a_resumed_training_remembers_the_best_dev_loss_and_how_long_it_has_waited(new_training: New) -> None:
    training, resumed = (new_training(plan={"patience": 3}) for _ in range(2))
    training.step(np.arange(9))
    for loss in (2.0, 2.5):
        training.stop_early(loss)
    resumed.restore(*training.state())
    assert [resumed.stop_early(loss) for loss in (2.4, 2.3)] == [False, True]

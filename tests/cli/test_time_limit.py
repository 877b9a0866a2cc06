"""A training with a time limit makes as many updates as fit in, by the speed of its first ones."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heads.base.files import read_json, read_jsonl
from heads.training import loop, pace
from heads.training.checkpointing import UnfinishedFolder
from heads.training.loop import Training
from killed_trainings import Killed, assert_same, killed
from known_trainings import RATE, Train
from slow_ones import slow_but

New = Callable[..., Training]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, which passes only in updates: 3 s in each of the first two, 1 s in all others."""
    now = [100.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(pace, "DECIDED", (3, 5))
    monkeypatch.setattr(pace, "FEWEST", 2)
    step = Training.step

    def slow(training: Training, *given: Any) -> Any:
        now[0] += 3.0 if training.update < 2 else 1.0
        return step(training, *given)

    monkeypatch.setattr(Training, "step", slow)
    return now


MOST = 24


def limited(new_training: New, seconds: float) -> Training:
    """A training of MOST updates at most, with a learning rate that falls until the last one."""
    training = new_training(plan={"updates": MOST}, decay_share=1.0, evaluate_every=4)
    training.plan = replace(training.plan, seconds=seconds)
    return training


def ended(training: Training, folder: Path, every: float = 1e9) -> dict[str, Any]:
    """The facts of a training that is run to its end, and saves its state after so many seconds."""
    return loop.train(training, lambda *_: {"dev_loss": 1.0}, UnfinishedFolder(folder, "one", every))


@pytest.mark.parametrize(
    ("seconds", "updates"),
    slow_but(
        [(20.0, 16), (9.5, 4), (3.0, 3), (0.0, MOST)],
        [(20.0, 16), (20.9, 16), (9.5, 4), (3.0, 3), (28.0, MOST), (500.0, MOST), (0.0, MOST)],
    ),
    # After update 3, 2 * 3 + 1 seconds have passed, and the last two updates took 2 on average; after update 5,
    # 2 * 3 + 3 seconds have passed, and each further update takes one.
)
def test_the_number_of_updates_is_what_fits_into_the_time(
    new_training: New, clock: list[float], tmp_path: Path, seconds: float, updates: int
) -> None:
    training = limited(new_training, seconds)
    facts = ended(training, tmp_path / "unfinished")
    assert (facts["updates"], facts["total_updates"], training.update) == (updates,) * 3
    assert facts.get("updates_cut", 0) == MOST - updates
    assert ("updates_cut" in facts) == (updates < MOST)
    last = [*read_jsonl(tmp_path / "unfinished/train.jsonl")][-1]
    assert (last["update"], last["updates"]) == (updates, updates)
    if updates > 5:  # in which it did not know yet
        assert last["learning_rate"] == training.plan.rate(updates) < 0.3 * training.plan.rate(updates // 2 + 1)


@pytest.mark.parametrize("killed_at", slow_but([2, 9], [2, 4, 9]))
def test_a_training_that_was_stopped_ends_where_it_would_have(
    new_training: New, clock: list[float], tmp_path: Path, killed_at: int
) -> None:
    """Once it has decided, it does not decide again; before, it is given its whole time once more."""
    with pytest.raises(Killed):
        ended(killed(limited(new_training, 20.0), killed_at), tmp_path / "stopped", every=0.0)
    resumed = limited(new_training, 20.0)
    clock[0] += 1000.0
    facts = ended(resumed, tmp_path / "stopped")
    taken = {2: 3 + 3, 4: 2, 9: 9}[killed_at]
    assert facts["updates"] == 5 + 20 - taken
    if killed_at == 9:
        whole = limited(new_training, 20.0)
        ended(whole, tmp_path / "whole")
        assert_same(resumed, whole)


def test_a_model_from_scratch_is_trained_for_as_much_shorter_as_the_unpruned_one(
    train: Train, clock: list[float]
) -> None:
    unpruned = train("baseline", training=RATE, baseline={"updates": 12, "minutes": 11 / 60})
    assert {"updates": 7, "updates_cut": 5}.items() <= read_json(unpruned / "model.json").items()
    for name in ("scratch", "gates_from_scratch"):
        again = train(name, flags={"unpruned": unpruned}, scratch={"updates": 14})
        assert read_json(again / "model.json")["updates"] == 9, name
    again = train("scratch", scratch={"updates": 14})
    assert read_json(again / "model.json")["updates"] == 14

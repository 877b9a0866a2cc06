"""The results of updates on a GPU are read later, and nothing is saved before; `tests/devices` has that none waits."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from heads.base.files import read_jsonl
from heads.model.checkpoint import load_tensors
from heads.model.encoder import Encoder
from heads.model.sublayers import Gates
from heads.text.batches import Batch
from heads.text.packed import Packed
from heads.training.checkpointing import UnfinishedFolder, checkpoints_in
from heads.training.loop import Training, Update, train
from heads.training.losses import Losses
from heads.training.schedule import TrainingPlan
from killed_trainings import Killed, assert_same, killed

New = Callable[..., Training]


def unwaited(training: Training) -> Training:
    """The same training as on a GPU: a thread makes batches ahead, and losses are read when they are due."""
    training.waits = False
    return training


def run(training: Training, folder: Path, save_every: float = 1e9) -> None:
    """Train to the end."""

    @torch.no_grad()
    def evaluate(model: Encoder, gates: Gates | None) -> dict[str, float]:
        batch = training.pairs.batch(np.arange(5))
        return {"dev_loss": float(model(batch.source, batch.source_mask, batch.target_input, gates).square().mean())}

    train(training, evaluate, UnfinishedFolder(folder, "one", save_every))


PLAN = {"updates": 11, "average_last": 2, "average_every": 3}


def test_a_training_that_does_not_wait_ends_with_the_same_weights_and_log(new_training: New, tmp_path: Path) -> None:
    how: dict[str, Any] = {"scope": "all", "lam": 0.2, "dropout": 0.3, "batch_tokens": 60, "micro_batch_tokens": 30}
    before, made_in = threading.active_count(), []
    one = new_training(**how, plan=PLAN, evaluate_every=4)
    run(one, tmp_path / "one")
    other = unwaited(new_training(**how, plan=PLAN, evaluate_every=4))
    prepare = other.prepare

    def watching(members: NDArray[np.int64]) -> Update:
        made_in.append(threading.current_thread())
        return prepare(members)

    other.prepare = watching  # type: ignore[method-assign]
    run(other, tmp_path / "other")
    assert len({*made_in}) == 1 and made_in[0] is not threading.current_thread()
    assert threading.active_count() == before, "the thread has ended"
    assert_same(one, other)
    logs = [read_jsonl(tmp_path / name / "train.jsonl") for name in ("one", "other")]
    for row in (*logs[0], *logs[1]):
        del row["source_tokens_per_second"]
    assert logs[0] == logs[1] and len(logs[0]) == 3


def test_a_training_that_did_not_wait_is_resumed_with_the_same_bits(new_training: New, tmp_path: Path) -> None:
    """Batches that were made ahead and never used are made again."""
    how: dict[str, Any] = {"scope": "all", "dropout": 0.3, "batch_tokens": 60, "plan": PLAN, "evaluate_every": 100}
    whole = unwaited(new_training(**how))
    run(whole, tmp_path / "whole")
    stopped = unwaited(new_training(**how))
    with pytest.raises(Killed):
        run(killed(stopped, 6), tmp_path / "stopped", save_every=0)
    resumed = unwaited(new_training(**how))
    run(resumed, tmp_path / "stopped")
    assert_same(whole, resumed)


def spoilt_at(training: Training, update: int) -> Training:
    """The same training with an infinite loss from this update on, although all weights stay finite."""
    loss_sum = training.loss_sum

    def spoilt(batch: Batch | Packed, gates: Gates | None) -> Tensor:
        loss = loss_sum(batch, gates)
        return loss + (torch.inf if training.update + 1 >= update else 0)

    training.loss_sum = spoilt  # type: ignore[method-assign]
    return training


@pytest.mark.parametrize(
    ("how", "reached"),
    [
        ({"evaluate_every": 6}, 6),
        ({"plan": {"updates": 11, "average_last": 5, "average_every": 2}}, 6),
        ({"checkpoint_updates": (2, 7)}, 7),
        ({"save_every": 0.0}, 5),
        ({}, 11),
    ],
    ids=["a line of the log", "a state to be averaged", "a moment", "a state to go on from", "the end"],
)
def test_a_loss_that_is_no_number_is_found_before_anything_is_kept_and_names_its_update(
    new_training: New, tmp_path: Path, how: dict[str, Any], reached: int
) -> None:
    how = {"plan": {"updates": 11}, **how}
    save_every, checkpoint_updates = how.pop("save_every", 1e9), how.pop("checkpoint_updates", ())
    training = unwaited(spoilt_at(new_training(**how), 5))
    training.plan = TrainingPlan(
        training.plan.training, training.plan.length, 7, 0, training.plan.device, checkpoint_updates
    )
    with pytest.raises(FloatingPointError, match=r"the loss is inf at update 5$"):
        run(training, tmp_path / "unfinished", save_every)
    assert training.update == reached
    assert not [path for path in (tmp_path / "unfinished").glob("snapshot-*") if int(path.stem[-8:]) >= 5]
    assert all(update < 5 for update in checkpoints_in(tmp_path / "unfinished"))
    if (state := tmp_path / "unfinished/state.safetensors").exists():
        assert load_tensors(state)[1]["update"] == 4
    assert state.exists() == (save_every == 0)


@pytest.mark.parametrize("bad", [torch.inf, -torch.inf, torch.nan])
def test_losses_are_read_once_in_their_order_and_the_first_bad_one_is_named(bad: float) -> None:
    losses, good = Losses(), [torch.tensor(value) for value in (2.5, 1.5)]
    for update, loss in enumerate(good, 7):
        losses.add(update, loss)
    assert losses.read() == [2.5, 1.5] == losses.take()
    assert losses.take() == []
    for update, loss in enumerate([*good, torch.tensor(bad), torch.tensor(torch.nan), *good], 10):
        losses.add(update, loss)
    for _ in range(2):
        with pytest.raises(FloatingPointError, match=rf"the loss is {bad} at update 12$"):
            losses.read()

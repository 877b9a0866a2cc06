"""An update on a GPU is launched without waiting; its results are read later, and nothing is saved before.

A device of kind `meta` stands for the GPU: tensors there have no values, so reading one fails by itself.
The CPU must not copy anything there and wait for its arrival either, which is checked operation by operation.
"""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from heads.base.files import read_jsonl
from heads.base.targets import Target
from heads.config.trainings import GatesSettings, LengthSettings, ModelSettings, SubsetSettings, TrainingSettings
from heads.model.checkpoint import load_tensors
from heads.model.encoder import Encoder, sinusoids
from heads.model.shape import unpruned_shape
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.text.batches import Batch, Pairs
from heads.training import cross_entropy, devices
from heads.training.checkpointing import Unfinished, checkpoints_in
from heads.training.job import frozen_beside, pruning_of
from heads.training.loop import Training, Update, train
from heads.training.losses import Losses
from heads.training.schedule import TrainingPlan
from killed_trainings import Killed, assert_same, killed

New = Callable[..., Training]
META = torch.device("meta")
SIZES = ModelSettings(layers=2, heads=3, width=12, feedforward=7, dropout=0.2, attention_dropout=0.2)


class NotWaiting(TorchDispatchMode):
    """Fails if a copy from the CPU to the device, or back, is waited for."""

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        """Check every operation."""
        options = options or {}
        found = operation(*arguments, **options)
        given = [each for each in arguments if isinstance(each, Tensor)]
        if str(operation).startswith(("aten._to_copy", "aten.copy_")) and found.device != given[-1].device:
            waits = not (options.get("non_blocking", False) or True in arguments)
            assert not waits, f"{operation} is waited for"
        return found


@pytest.fixture
def on_meta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what torch has for real devices only: their generators, mixed precision, fused optimisers."""
    tensor, adam = torch.tensor, torch.optim.Adam

    def made(value: Any, *, device: torch.device | None = None, **options: Any) -> Tensor:
        assert device != META, "what Python knows is written to the device, and waited for"
        return tensor(value, device=device, **options)

    class Generator:
        """A generator without a device; torch draws without one where it is given None."""

        def __init__(self, device: torch.device) -> None:
            assert device == META

        def manual_seed(self, seed: int) -> None:
            """Do nothing: there are no values to draw."""

    monkeypatch.setattr(torch, "tensor", made)
    monkeypatch.setattr(torch, "Generator", Generator)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    monkeypatch.setattr(torch.optim, "Adam", lambda *groups, **rest: adam(*groups, **{**rest, "fused": False}))
    monkeypatch.setattr(cross_entropy, "LEAST_TOKENS", 1)
    monkeypatch.setitem(cross_entropy.CHUNK, "meta", 100)
    monkeypatch.setitem(devices.LENGTH_MULTIPLE, "meta", 8)


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "parts": {"micro_batch_tokens": 60},
    "muon": {"optimizer": "muon"},
    "encoder": {"scope": "enc_self"},
    "gates": {"scope": "all", "micro_batch_tokens": 60},
    "budget": {"scope": "all", "target": "keep-7"},
    "budgets": {"scope": "all", "target": "keep-2-3-1"},
    "subset": {"scope": "all", "target": "dsp-7"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_update_waits_for_the_device(
    kind: str, digit_pairs: Callable[..., Pairs], on_meta: None, training_settings: Callable[..., TrainingSettings]
) -> None:
    changes: dict[str, Any] = {"scope": "", "target": "lam-0.5", **KINDS[kind]}
    scope, target = changes.pop("scope"), Target.parse(changes.pop("target"), by_gates=True)
    model = Transformer(unpruned_shape(SIZES, 13, 11))
    gates = GatesSettings(updates=2, settled_share=0.5, subset=SubsetSettings(straight_through=True))
    pruning = pruning_of(model, scope, target, gates, frozen_beside(scope, model)) if scope else None
    settings = training_settings(batch_tokens=150, **{"micro_batch_tokens": 150, **changes})
    training = Training(
        model,
        digit_pairs(count=60),
        TrainingPlan(settings, LengthSettings(updates=2, patience=0, average_last=1, average_every=1), 7, 0, META),
        pruning,
    )
    updates = training.prepared(0)
    with NotWaiting():
        for _ in range(2):  # the gates have settled in the second
            row = training.step(*next(updates))
    updates.close()
    assert len(training.losses.unread) == 2
    assert all(row[name].device == META for name in row if name != "learning_rate")  # type: ignore[union-attr]


def test_signals_of_positions_are_made_where_they_are_needed() -> None:
    with NotWaiting():
        assert sinusoids(5, 6, 2, torch.float32, META).device == META
    assert sinusoids(5, 6, 2, torch.float32).dtype == torch.float32


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

    train(training, evaluate, Unfinished(folder, "one", save_every))


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

    def spoilt(batch: Batch, gates: Gates | None) -> Tensor:
        loss = loss_sum(batch, gates)
        return loss + (torch.inf if training.update + 1 >= update else 0)

    training.loss_sum = spoilt  # type: ignore[method-assign]
    return training


@pytest.mark.parametrize(
    ("how", "reached"),
    [
        ({"evaluate_every": 6}, 6),
        ({"plan": {"updates": 11, "average_last": 5, "average_every": 2}}, 6),
        ({"keep_at": (2, 7)}, 7),
        ({"save_every": 0.0}, 5),
        ({}, 11),
    ],
    ids=["a line of the log", "a state to be averaged", "a moment", "a state to go on from", "the end"],
)
def test_a_loss_that_is_no_number_is_found_before_anything_is_kept_and_names_its_update(
    new_training: New, tmp_path: Path, how: dict[str, Any], reached: int
) -> None:
    how = {"plan": {"updates": 11}, **how}
    save_every, keep_at = how.pop("save_every", 1e9), how.pop("keep_at", ())
    training = unwaited(spoilt_at(new_training(**how), 5))
    training.plan = TrainingPlan(training.plan.training, training.plan.length, 7, 0, training.plan.device, keep_at)
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

"""A training that was killed and resumed ends as if nothing had happened; a foreign state is never resumed."""

import dataclasses
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from heads.base.files import UserError, read_jsonl
from heads.model.checkpoint import load_tensors, save_tensors
from heads.model.encoder import Encoder
from heads.model.sublayers import Gates
from heads.training.checkpointing import Resumable, UnfinishedFolder, checkpoints_in, fingerprint
from heads.training.loop import Training, train
from heads.training.optimizers import Optimizers
from killed_trainings import Killed, assert_same, killed
from slow_ones import slow_but

New = Callable[..., Training]
UPDATES = 11
MUON = {"optimizer": "muon"}
PLAN = {"updates": UPDATES, "average_last": 2, "average_every": 3}


class Sometimes(UnfinishedFolder):
    """Saves the state after the updates in `at` instead of by the clock."""

    at: tuple[int, ...] = ()

    def save_when_due(self, training: Resumable) -> None:
        self.every = 0.0 if training.update in self.at else 1e9
        super().save_when_due(training)


def build(new_training: New, **changes: Any) -> Training:
    """A training with everything that has a random state or a memory: dropout, gates, an optimiser, averaging."""
    values = {"scope": "all", "lam": 0.1, "dropout": 0.3, "plan": PLAN, "evaluate_every": 4, "batch_tokens": 60}
    return new_training(**{**values, **changes})


def run(
    training: Training, folder: Path, *, save: tuple[int, ...] = (), kill: int = 0, identity: str = "one"
) -> dict[str, Any]:
    """Train with a real dev loss, saving after the updates in `save`, until killed in the middle of update `kill`."""
    unfinished = Sometimes(folder, identity, 1e9)
    unfinished.at = save

    @torch.no_grad()
    def evaluate(model: Encoder, gates: Gates | None) -> dict[str, float]:
        batch = training.pairs.batch(np.arange(5))
        logits = model.projection(model(batch.source, batch.source_mask, batch.target_input, gates))
        return {"dev_loss": float(F.cross_entropy(logits[batch.target_mask], batch.target_output[batch.target_mask]))}

    with pytest.raises(Killed) if kill else nullcontext():
        return train(killed(training, kill), evaluate, unfinished)
    return {}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the uninterrupted training; only to be read."""
    return tmp_path_factory.mktemp("whole") / "uninterrupted"


@pytest.fixture(scope="module")
def uninterrupted(new_training: New, logs: Path) -> Training:
    """Only to be compared with."""
    training = build(new_training)
    run(training, logs)
    return training


MOMENTS = [((1,), 2), ((2, 3), 5), ((4,), 5), ((5,), 11), ((8,), 11), ((6, 9), 11)]
"""After which updates a state is saved, and in which the training is killed."""


@pytest.mark.parametrize(("save", "kill"), slow_but([((2, 3), 5), ((8,), 11)], MOMENTS), ids=str)
def test_a_killed_and_resumed_training_ends_with_the_same_bits(
    new_training: New, uninterrupted: Training, tmp_path: Path, save: tuple[int, ...], kill: int
) -> None:
    folder = tmp_path / "unfinished"
    run(build(new_training), folder, save=save, kill=kill)
    resumed = build(new_training)
    run(resumed, folder)
    assert_same(uninterrupted, resumed)


@pytest.mark.parametrize("how", slow_but([MUON], [MUON, {"precision": "bf16"}]), ids=str)
def test_every_optimiser_and_precision_is_taken_up_with_the_same_bits(
    new_training: New, tmp_path: Path, how: dict[str, str]
) -> None:
    whole, resumed = build(new_training, **how), build(new_training, **how)
    run(whole, tmp_path / "whole")
    run(build(new_training, **how), tmp_path / "killed", save=(4,), kill=6)
    run(resumed, tmp_path / "killed")
    assert_same(whole, resumed)


def test_a_training_may_be_killed_many_times(new_training: New, uninterrupted: Training, tmp_path: Path) -> None:
    folder = tmp_path / "unfinished"
    for kill in (3, 4, 9, 10):
        run(build(new_training), folder, save=tuple(range(UPDATES)), kill=kill)
    resumed = build(new_training)
    facts = run(resumed, folder)
    assert_same(uninterrupted, resumed)
    assert facts["updates"] == UPDATES


def test_the_logs_of_a_resumed_training_hold_every_update_once(
    new_training: New, uninterrupted: Training, logs: Path, tmp_path: Path
) -> None:
    del uninterrupted
    folder = tmp_path / "unfinished"
    run(build(new_training), folder, save=(3,), kill=10)
    with (folder / "train.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"update": 9, "cut off in the mid')
    run(build(new_training), folder)
    for name, updates in (("train.jsonl", [4, 8, 11]), ("gates.jsonl", [1, 3, 6, 9, 11])):
        resumed, whole = (read_jsonl(place / name) for place in (folder, logs))
        assert [record["update"] for record in resumed] == updates
        for one, other in zip(resumed, whole, strict=True):
            assert {k: v for k, v in one.items() if k in ("update", "dev_loss", "p_open", "learning_rate")} == {
                k: v for k, v in other.items() if k in ("update", "dev_loss", "p_open", "learning_rate")
            }


def test_a_state_saved_after_the_last_update_is_only_averaged(
    new_training: New, uninterrupted: Training, tmp_path: Path
) -> None:
    run(build(new_training), tmp_path / "unfinished", save=(UPDATES,))
    resumed = build(new_training)
    run(resumed, tmp_path / "unfinished")
    assert_same(uninterrupted, resumed)
    assert resumed.update == UPDATES and not resumed.model.training


def test_a_training_that_had_stopped_early_does_not_go_on_when_it_is_resumed(new_training: New, tmp_path: Path) -> None:
    unfinished, plan = Sometimes(tmp_path / "unfinished", "one", 1e9), {"updates": 30, "patience": 1}
    unfinished.at = (4,)
    losses = iter([1.0, 2.0, 0.5, 0.6, 0.7, 0.8, 0.9])

    def evaluate(*_: object) -> dict[str, float]:
        return {"dev_loss": next(losses)}

    whole = build(new_training, plan=plan, evaluate_every=2)
    train(whole, evaluate, unfinished)
    assert whole.update == 4
    unfinished.lock.close()
    resumed = build(new_training, plan=plan, evaluate_every=2)
    train(resumed, evaluate, UnfinishedFolder(unfinished.folder, "one", 1e9))
    assert resumed.update == 4
    assert_same(whole, resumed)


def test_a_state_of_other_settings_is_not_taken_up(new_training: New, uninterrupted: Training, tmp_path: Path) -> None:
    folder = tmp_path / "unfinished"
    run(build(new_training, lam=3.0), folder, save=(3, 6), kill=8, identity="other")
    assert list(folder.glob("snapshot-*"))
    afresh = build(new_training)
    run(afresh, folder)
    assert_same(uninterrupted, afresh)
    assert [record["update"] for record in read_jsonl(folder / "train.jsonl")] == [4, 8, 11]


def test_moments_go_to_their_parameters_when_these_come_in_another_order(
    new_training: New, uninterrupted: Training, tmp_path: Path
) -> None:
    run(build(new_training), tmp_path / "unfinished", save=(5,), kill=8)
    training = build(new_training)
    assert training.pruning
    # As if a later version of the code named the bias of a layer before its weight.
    for module in training.model.modules():
        module._parameters = dict(reversed(module._parameters.items()))
    gates, rate = training.pruning.gates.parameters(), training.pruning.learning_rate
    other = Optimizers(training.model, training.plan.training, gates, rate)
    names = list(training.optimizers.names.values())
    assert list(other.names.values()) != names and {*other.names.values()} == {*names}
    training.optimizers = other
    run(training, tmp_path / "unfinished")
    assert_same(uninterrupted, training)


def test_a_state_of_other_parameters_is_said_to_be_of_another_version_and_not_taken_up(
    new_training: New, uninterrupted: Training, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(build(new_training), tmp_path / "unfinished", save=(5,), kill=8)
    state = tmp_path / "unfinished/state.safetensors"
    tensors, facts = load_tensors(state)
    by_number = {f"optimizer.0.{n}.exp_avg" if n.startswith("optimizer.") else n: t for n, t in tensors.items()}
    save_tensors(state, by_number, facts)
    training = build(new_training)
    run(training, tmp_path / "unfinished")
    assert f"{state} is from another version of this code: the training starts over" in capsys.readouterr().err
    assert_same(uninterrupted, training)


@pytest.mark.parametrize("share", slow_but([0.5], [0.0, 0.01, 0.5, 0.99]))
def test_a_truncated_state_is_not_taken_up(
    new_training: New, uninterrupted: Training, tmp_path: Path, share: float
) -> None:
    folder = tmp_path / "unfinished"
    run(build(new_training), folder, save=(5,), kill=7)
    state = folder / "state.safetensors"
    state.write_bytes(state.read_bytes()[: int(share * state.stat().st_size)])
    afresh = build(new_training)
    run(afresh, folder)
    assert_same(uninterrupted, afresh)


def test_a_kill_while_the_state_is_written_leaves_the_state_before_it(
    new_training: New, uninterrupted: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "unfinished"
    run(build(new_training), folder, save=(5,), kill=6)
    before = (folder / "state.safetensors").read_bytes()

    def torn(tensors: object, path: Path, **_: object) -> None:
        del tensors
        path.write_bytes(b"half")
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("heads.model.checkpoint.save_file", torn)
        with pytest.raises(Killed):
            run(build(new_training), folder, save=(7,))
    assert (folder / "state.safetensors").read_bytes() == before
    resumed = build(new_training)
    run(resumed, folder)
    assert_same(uninterrupted, resumed)


KEPT = (2, 5, 8, 10)


def keeping(new_training: New, updates: tuple[int, ...] = KEPT) -> Training:
    training = build(new_training)
    training.plan = dataclasses.replace(training.plan, checkpoint_updates=updates)
    return training


@pytest.fixture(scope="module")
def moments(new_training: New, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an uninterrupted training that keeps moments; only to be read."""
    folder = tmp_path_factory.mktemp("moments") / "whole"
    run(keeping(new_training), folder)
    return folder


@pytest.mark.parametrize(
    ("save", "kill"), slow_but([((2, 6), 9)], [((1,), 3), ((2, 6), 9), ((5,), 11), ((8,), 11)]), ids=str
)
def test_a_killed_and_resumed_training_keeps_the_same_moments(
    new_training: New, moments: Path, tmp_path: Path, save: tuple[int, ...], kill: int
) -> None:
    run(keeping(new_training), tmp_path / "unfinished", save=save, kill=kill)
    run(keeping(new_training), tmp_path / "unfinished")
    whole, resumed = checkpoints_in(moments), checkpoints_in(tmp_path / "unfinished")
    assert tuple(resumed) == KEPT
    for update, path in whole.items():
        expected, found = load_tensors(path)[0], load_tensors(resumed[update])[0]
        assert all(torch.equal(found[name], value) for name, value in expected.items()), update


def test_a_moment_after_the_saved_state_is_forgotten(new_training: New, tmp_path: Path) -> None:
    run(keeping(new_training), tmp_path / "unfinished", save=(4,), kill=9)
    assert tuple(checkpoints_in(tmp_path / "unfinished")) == (2, 5, 8)
    run(keeping(new_training, ()), tmp_path / "unfinished", kill=5)
    assert tuple(checkpoints_in(tmp_path / "unfinished")) == (2,)


def test_moments_are_copied_into_a_folder_that_holds_nothing_else(new_training: New, tmp_path: Path) -> None:
    run(keeping(new_training), tmp_path / "unfinished")
    stale = tmp_path / "checkpoints" / "checkpoint-00000099.safetensors"
    stale.parent.mkdir()
    stale.write_bytes(b"of an older training")
    unfinished = UnfinishedFolder(tmp_path / "unfinished", "one", 1e9)
    unfinished.write_checkpoints(stale.parent)
    assert tuple(checkpoints_in(stale.parent)) == KEPT
    assert sorted(stale.parent.iterdir()) == list(checkpoints_in(stale.parent).values())


def test_two_trainings_can_not_share_one_folder(tmp_path: Path) -> None:
    first = UnfinishedFolder(tmp_path / "unfinished", "one", 1e9)
    with pytest.raises(UserError, match="in use by another training"):
        UnfinishedFolder(tmp_path / "unfinished", "one", 1e9)
    first.lock.close()
    UnfinishedFolder(tmp_path / "unfinished", "one", 1e9)


def test_nothing_of_the_folder_is_left_when_all_is_done(new_training: New, tmp_path: Path) -> None:
    folder, logs = tmp_path / "run" / "unfinished", {n: tmp_path / "run" / n for n in ("train.jsonl", "gates.jsonl")}
    run(build(new_training), folder, save=(2, 4))
    UnfinishedFolder(folder, "one", 1e9).finish(logs)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["gates.jsonl", "train.jsonl"]
    assert len(read_jsonl(logs["train.jsonl"])) == 3


def test_a_fingerprint_tells_settings_apart_but_not_their_order() -> None:
    same = fingerprint({"a": 1, "b": 0.5}, 7, "start")
    assert same == fingerprint({"b": 0.5, "a": 1}, 7, "start")
    others = [({"a": 1, "b": 0.6}, 7, "start"), ({"a": 1, "b": 0.5}, 8, "start"), ({"a": 1, "b": 0.5}, 7, "begin")]
    assert len({same, *(fingerprint(*other) for other in others)}) == 4

"""Trainings on another device than the CPU: every kind of update, and a run that is stopped and goes on."""

import copy
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from heads.base.targets import Target
from heads.config.trainings import GatesSettings, SubsetSettings
from heads.training.checkpointing import UnfinishedFolder
from heads.training.job import frozen_beside, pruning_of
from heads.training.loop import Training, train
from killed_trainings import Killed, killed

New = Callable[..., Training]
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "parts": {"micro_batch_tokens": 30},
    "muon": {"optimizer": "muon"},
    "bf16": {"precision": "bf16"},
    "gates": {"target": "lam-0.3", "micro_batch_tokens": 30},
    "encoder": {"target": "lam-0.3", "scope": "enc_self"},
    "budget": {"target": "keep-7"},
    "budgets": {"target": "keep-2-3-1"},
    "subset": {"target": "dsp-7"},
    "straight": {"target": "dsp-7", "straight_through": True},
}
"""The settings of a training, and the target and scope of its gates, if it has any."""


def on(
    device: torch.device, training: Training, target: str = "", scope: str = "all", *, straight_through: bool = False
) -> Training:
    """The same training on a device; its gates, if any, settle after three of five updates."""
    model = copy.deepcopy(training.model)
    plan = dataclasses.replace(training.plan, device=device)
    subset = SubsetSettings(straight_through=straight_through)
    gates = GatesSettings(updates=5, fixed_gates_share=0.4, gate_learning_rate=0.05, subset=subset)
    wanted, frozen = Target.parse(target, by_gates=True) if target else None, frozen_beside(scope, model)
    pruning = pruning_of(model, scope, wanted, gates, frozen) if wanted else None
    return Training(model, training.pairs, plan, pruning)


def built(new_training: New, device: torch.device, kind: str) -> Training:
    """A training of a kind on a device, with dropout."""
    how = dict(KINDS[kind])
    own = {name: how.pop(name) for name in ("target", "scope", "straight_through") if name in how}
    return on(device, new_training(dropout=0.2, batch_tokens=90, **{"micro_batch_tokens": 90, **how}), **own)


def stopped_and_whole(new: Callable[[], Training], folder: Path) -> tuple[Training, Training]:
    """The same training in one run, and killed in the middle of its fourth update and resumed."""

    def evaluate(*_: object) -> dict[str, float]:
        return {"dev_loss": 1.0}

    whole = new()
    train(whole, evaluate, UnfinishedFolder(folder / "whole", "one", 1e9))
    with pytest.raises(Killed):
        train(killed(new(), 4), evaluate, UnfinishedFolder(folder / "stopped", "one", 0.0))
    resumed = new()
    train(resumed, evaluate, UnfinishedFolder(folder / "stopped", "one", 1e9))
    return resumed, whole

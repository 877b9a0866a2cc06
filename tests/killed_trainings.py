"""Trainings that are killed in the middle of an update, and what two trainings must have alike."""

from typing import Any

import torch
from torch import Tensor

from heads.training.loop import Row, Training


class Killed(Exception):
    """Stands for a signal in the middle of a training."""


def killed(training: Training, update: int) -> Training:
    """The same training, which is killed in the middle of this update; 0: never."""
    step = training.step

    def stopping(*given: Any) -> Row:
        if training.update + 1 == update:
            raise Killed
        return step(*given)

    training.step = stopping  # type: ignore[method-assign]
    return training


def weights(training: Training) -> dict[str, Tensor]:
    """Every weight and gate of a training, on the CPU."""
    gates = training.pruning.gates.state_dict() if training.pruning else {}
    named = {**training.model.state_dict(), **{f"gate {name}": value for name, value in gates.items()}}
    return {name: value.detach().cpu() for name, value in named.items()}


def assert_same(first: Training, second: Training) -> None:
    """Assert that both have the same weights and gates, to the last bit."""
    for name, value in weights(first).items():
        torch.testing.assert_close(weights(second)[name], value, rtol=0, atol=0, msg=name)

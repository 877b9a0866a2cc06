"""Trainings with a time limit: the speed of the first updates says how many there will be."""

import time
from pathlib import Path
from typing import TypeVar

from heads.config.trainings import LengthSettings
from heads.model.shape import facts_of
from heads.training.losses import Losses

WARM, MEASURED, FEWEST = 50, 250, 20
"""The speed is that of the updates between the first two, since the very first are slower; of at least so many."""
Length = TypeVar("Length", bound=LengthSettings)


class TimeLimit:
    """The time that a training may take; evaluations come on top, but for those within its first updates."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.began = seconds, time.monotonic()
        self.first, self.since = 0, 0.0

    def updates_left(self, update: int, losses: Losses) -> float | None:
        """How many more updates fit in after this one, if it is the one after which to decide.

        A training that was resumed after that has decided before; what it took until it was stopped does not count.
        """
        if not self.seconds or self.first > MEASURED:
            return None
        if not self.first or update == WARM:
            losses.read()  # waits for a GPU
            self.first, self.since = update, time.monotonic()
        if update != max(MEASURED, self.first + FEWEST):
            return None
        losses.read()
        now = time.monotonic()
        left = max(0.0, self.seconds - (now - self.began))
        return left * (update - self.first) / (now - self.since)


def as_long(length: Length, unpruned: Path) -> Length:
    """The length of a training that should last as long as that of an unpruned model, which its time limit may cut."""
    cut = facts_of(unpruned).get("updates_cut", 0)
    return length.model_copy(update={"updates": max(1, length.updates - cut)})

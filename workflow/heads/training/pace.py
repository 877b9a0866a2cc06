"""Trainings with a time limit: the speed of the first updates says, ever more surely, how many there will be."""

import time
from pathlib import Path
from typing import TypeVar

from heads.config.trainings import LengthSettings
from heads.model.shape import facts_of
from heads.training.losses import Losses

DECIDED, FEWEST = (10, 20, 40, 80, 160, 250), 5
"""After which updates it is decided, by the speed of those since the last decision; of at least so many."""
Length = TypeVar("Length", bound=LengthSettings)


class TimeLimit:
    """The time that a training may take; evaluations come on top, but for those up to the last decision."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.began = seconds, time.monotonic()
        self.first, self.since = 0, (0, 0.0)

    def updates_left(self, update: int, losses: Losses) -> float | None:
        """How many more updates fit in after this one, if it is one after which to decide.

        A training that was resumed after the last of them has decided before; what it took until it was stopped does
        not count.
        """
        if not self.seconds or self.first > DECIDED[-1]:
            return None
        if not self.first:
            losses.read()  # waits for a GPU
            self.first, self.since = update, (update, time.monotonic())
        enough = self.first + FEWEST
        if not (update in DECIDED and update >= enough) and update != max(DECIDED[-1], enough):
            return None
        losses.read()
        (before, then), now = self.since, time.monotonic()
        self.since = update, now
        return max(0.0, self.seconds - (now - self.began)) * (update - before) / (now - then)


def as_long(length: Length, unpruned: Path) -> Length:
    """The length of a training that should last as long as that of an unpruned model, which its time limit may cut."""
    cut = facts_of(unpruned).get("updates_cut", 0)
    return length.model_copy(update={"updates": max(1, length.updates - cut)})

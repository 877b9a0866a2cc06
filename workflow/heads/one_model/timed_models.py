"""Which model to time next, if one is to be so many times as fast as another: in numbers, without timing any."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from heads.model.encoder import Encoder
from heads.model.shape import Place

NEAR = 1.05
"""How many times as fast as asked for a model may be, or a larger one is tried, which loses less."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A model that was timed."""

    more: float
    """By what factor more time it was to save than asked for."""
    speed: float
    """How many times as fast as the whole model it was."""
    numbers: Mapping[Place, int]
    """How many heads or units its sub-layers keep."""
    model: Encoder


def next_to_time(timed: Sequence[Timed], asked: float) -> float:
    """By what factor more time the next model is to save, after those that were timed.

    As much more as the last one lacks; once one was too slow and one fast enough, between the two.
    """
    # In the middle of what is near enough, as a model that is just too slow is of no use.
    wanted = saved_by(asked * (1 + NEAR) / 2)
    slow = max((one for one in timed if one.speed < asked), key=lambda one: one.more, default=None)
    fast = fast_enough(timed, asked)
    if slow is not None and fast is not None and slow.more < fast.more:
        share = (wanted - saved_by(slow.speed)) / (saved_by(fast.speed) - saved_by(slow.speed))
        return slow.more + share * (fast.more - slow.more)
    return timed[-1].more * wanted / max(saved_by(timed[-1].speed), 0.01)


def fast_enough(timed: Iterable[Timed], asked: float) -> Timed | None:
    """The largest of the models that were timed and are as fast as asked for; None: there is none."""
    return min((one for one in timed if one.speed >= asked), key=lambda one: one.more, default=None)


def saved_by(speed: float) -> float:
    """What share of the time a model saves that is so many times as fast."""
    return 1 - 1 / speed

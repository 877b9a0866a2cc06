"""Pick how many heads or hidden units each sub-layer keeps: the least loss within a size, by integer programming.

A ladder has what the whole model loses with each number of heads or units, a rung, in one sub-layer, all others being
whole. The sum of one rung of each ladder stands for the loss of the model with all of them at once.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heads.model.shape import Place

Ladder = Mapping[int, float]
"""The loss by the number of heads or units that a sub-layer keeps."""
TOLERANCE = 1e-9
"""Of a limit, as the solver's own is absolute."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of what all sub-layers together may cost."""

    cost: Callable[[Place], float]
    """Of one head or unit of a sub-layer."""
    least: float
    most: float


def picked(
    ladders: Mapping[Place, Ladder], limits: Sequence[Limits], together: Collection[Collection[Place]] = ()
) -> dict[Place, int] | None:
    """One rung of each ladder, with the least sum of losses within all limits (CBC); None if no rungs fit them.

    Going down the cheapest rung first is exact only with one limit of equal costs and ladders whose steps ever rise.

    together: groups of sub-layers which all keep the same number; their ladders must have the same rungs.
    """
    import pulp  # here, as it takes a third of a second

    first = {place: group_first for group in together for group_first in [min(group)] for place in group}
    problem = pulp.LpProblem("rungs", pulp.LpMinimize)
    own = {
        (place, number): problem.add_variable(f"x{which}_{number}", cat="Binary")
        for which, (place, ladder) in enumerate(ladders.items())
        if first.get(place, place) == place
        for number in ladder
    }
    chosen = {
        (place, number): own[first.get(place, place), number] for place, ladder in ladders.items() for number in ladder
    }
    worst = max((abs(loss) for ladder in ladders.values() for loss in ladder.values()), default=0) or 1.0
    problem += pulp.lpSum(ladders[place][number] / worst * one for (place, number), one in chosen.items())
    for limit in limits:
        # The solver's tolerances are absolute, so costs are scaled to at most 1.
        most = max(limit.cost(place) * max(ladder) for place, ladder in ladders.items()) or 1.0
        total = pulp.lpSum(limit.cost(place) * number / most * one for (place, number), one in chosen.items())
        problem += total >= limit.least / most - TOLERANCE
        problem += total <= limit.most / most + TOLERANCE
    for place, ladder in ladders.items():
        if first.get(place, place) == place:
            problem += pulp.lpSum(own[place, number] for number in ladder) == 1
    if not solved(problem):
        return None
    return {place: number for (place, number), one in chosen.items() if one.value() > 0.5}


def solved(problem: Any) -> bool:
    """Solve an integer programme of PuLP exactly, by CBC; False if nothing meets its limits."""
    import pulp

    # Without `threads` it has no thread of its own: with one, it waits for ten seconds in three of a thousand calls.
    problem.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=0, gapAbs=0))
    found: bool = problem.status == pulp.LpStatusOptimal
    return found


def interpolated(ladder: Ladder, step: int, error: Callable[[int], float]) -> dict[int, float]:
    """A ladder with a rung at every `step` down from its highest: losses rise as errors do between those measured.

    error: of the sub-layer's outputs, squared, with so many heads or units. A small change of the states moves the
    answers by a divergence that is quadratic in it, so that a few measured losses give all others.
    """
    numbers, known = [*range(max(ladder), min(ladder) - 1, -step)], sorted(ladder, reverse=True)
    losses = np.interp([*map(error, numbers)], [*map(error, known)], [ladder[number] for number in known])
    return dict(zip(numbers, losses.tolist(), strict=True))

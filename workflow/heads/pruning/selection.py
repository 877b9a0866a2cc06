"""From a score of every head to the heads that are kept: best, random, optimal under limits, or in steps. No torch.

A head is (attention, layer, head), the head under its original number. Among equal scores the head that comes first in
the order of every table is the better one, so that a choice is the same everywhere.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pulp

from heads.base.files import UserError
from heads.base.names import ATTENTIONS
from heads.model.shape import Head

Scores = Mapping[Head, float]


@dataclass(frozen=True, slots=True)
class Limit:
    """What all kept heads together may cost: `costs` of each head, in any unit, and the `budget` in the same unit."""

    name: str
    costs: Mapping[Head, float]
    budget: float


def place(head: Head) -> tuple[int, int, int]:
    """Where a head stands in every table."""
    attention, layer, number = head
    return ATTENTIONS.index(attention), layer, number


def ranked(scores: Scores) -> list[Head]:
    """All heads, the best first.

    Raises ValueError when a score is not finite.
    """
    for head, score in scores.items():
        if not math.isfinite(score):
            raise ValueError(f"the score of head {head} is {score}")
    return sorted(scores, key=lambda head: (-scores[head], place(head)))


def reversed_scores(scores: Scores) -> dict[Head, float]:
    """The control that takes the worst heads for the best."""
    return {head: -score for head, score in scores.items()}


def random_scores(heads: Collection[Head], seed: int) -> dict[Head, float]:
    """The control that knows nothing: every order of the heads is equally likely, and the same for the same seed."""
    order = np.random.default_rng(seed).permutation(len(heads)).tolist()
    return dict(zip(sorted(heads, key=place), map(float, order), strict=True))


def keep_best(scores: Scores, budget: int) -> list[Head]:
    """The `budget` best heads, in the order of tables.

    Raises UserError when there are fewer heads.
    """
    if not 0 <= budget <= len(scores):
        raise UserError(f"{budget} heads are to be kept, but there are {len(scores)}: give a number from 0 to that.")
    return sorted(ranked(scores)[:budget], key=place)


def keep_optimal(
    scores: Scores, limits: Sequence[Limit], at_least: Mapping[tuple[str, int], int] | None = None
) -> list[Head]:
    """The heads with the largest sum of scores that hold all limits, by integer programming (CBC).

    at_least: how many heads must be kept in a layer, by (attention, layer). Fewer heads than a limit allows are kept
    where the others have scores below zero.
    Raises UserError when no choice holds all limits.
    """
    heads, least = ranked(scores), dict(at_least or {})
    problem = pulp.LpProblem("heads", pulp.LpMaximize)
    kept = dict(zip(heads, (problem.add_variable(f"x{i}", cat="Binary") for i in range(len(heads))), strict=True))
    # The solver's tolerances are absolute, so scores and costs are brought to the size of one.
    largest = max((abs(score) for score in scores.values()), default=0) or 1.0
    problem += pulp.lpSum(scores[head] / largest * kept[head] for head in heads)
    for limit in limits:
        unit = max((abs(limit.costs[head]) for head in heads), default=0) or 1.0
        problem += pulp.lpSum(limit.costs[head] / unit * kept[head] for head in heads) <= limit.budget / unit
    for layer, number in least.items():
        problem += pulp.lpSum(kept[head] for head in heads if head[:2] == layer) >= number
    problem.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=0, gapAbs=0, threads=1))
    if problem.status != pulp.LpStatusOptimal:
        asked = [f"{limit.name} of at most {limit.budget:g}" for limit in limits]
        asked += _least_in_words(least)
        raise UserError(
            f"no choice among {len(heads)} heads has {' and '.join(asked)}: raise a budget or ask for less."
        )
    return _first_of_equals(heads, {head for head in heads if kept[head].value() > 0.5}, scores, limits, least)


def _least_in_words(least: Mapping[tuple[str, int], int]) -> list[str]:
    """What must be kept, a phrase for each number of heads: layers of the same number are only counted."""
    layers: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for layer, number in least.items():
        layers[number].append(layer)
    return [
        f"at least {number} head{'s' * (number > 1)} in "
        + (f"each of {len(same)} layers" if len(same) > 1 else f"{same[0][0]} layer {same[0][1]}")
        for number, same in layers.items()
    ]


def _first_of_equals(
    heads: Sequence[Head],
    kept: set[Head],
    scores: Scores,
    limits: Sequence[Limit],
    least: Mapping[tuple[str, int], int],
) -> list[Head]:
    """As many heads of every kind that the problem can not tell apart, but the first ones; `heads` are ranked."""
    alike: dict[tuple[object, ...], list[Head]] = defaultdict(list)
    for head in heads:
        layer = head[:2] if head[:2] in least else None
        alike[scores[head], layer, *(limit.costs[head] for limit in limits)].append(head)
    first = [head for group in alike.values() for head in group[: len(kept & set(group))]]
    return sorted(first, key=place)


def steps(scores: Scores, share: float = 0.1) -> list[list[Head]]:
    """The heads to mask at one share of all heads, at two, and so on up to all: each step adds the worst that are left.

    (Michel et al. 2019, sec. 4: the order is fixed once.) Numbers of heads are rounded to the nearest, halves up.
    Raises UserError when `share` is not in (0, 1].
    """
    if not 0 < share <= 1:
        raise UserError(f"heads are to be masked in steps of {share:g}: give a share above 0, at most 1.")
    worst_first = ranked(scores)[::-1]
    number = math.floor(1 / share + 1e-9)
    return [worst_first[: math.floor(len(worst_first) * share * step + 0.5 + 1e-9)] for step in range(1, number + 1)]

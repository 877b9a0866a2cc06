"""The most important heads under limits on each layer, by integer programming. No torch.

Separate from the other criteria, as only this one needs the solver's package.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import pulp

from heads.base.files import UserError
from heads.model.shape import Head
from heads.pruning.selection import Scores, place, ranked


def keep_optimal(scores: Scores, budget: int, at_least: Mapping[tuple[str, int], int] | None = None) -> list[Head]:
    """The heads, at most `budget`, with the largest sum of scores, by integer programming (CBC).

    at_least: the smallest number of heads to keep in a layer, by (attention, layer). Fewer heads than the budget are
    kept if the others have scores below zero.
    Raises UserError if no choice meets the limits.
    """
    heads, least = ranked(scores), dict(at_least or {})
    problem = pulp.LpProblem("heads", pulp.LpMaximize)
    kept = dict(zip(heads, (problem.add_variable(f"x{i}", cat="Binary") for i in range(len(heads))), strict=True))
    # The solver's tolerances are absolute, so scores are scaled to at most 1.
    largest = max((abs(score) for score in scores.values()), default=0) or 1.0
    problem += pulp.lpSum(scores[head] / largest * kept[head] for head in heads)
    problem += pulp.lpSum(kept.values()) <= budget
    for layer, number in least.items():
        problem += pulp.lpSum(kept[head] for head in heads if head[:2] == layer) >= number
    problem.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=0, gapAbs=0, threads=1))
    if problem.status != pulp.LpStatusOptimal:
        asked = [f"at most {budget} heads", *_least_in_words(least)]
        raise UserError(
            f"no choice among {len(heads)} heads has {' and '.join(asked)}: "
            "raise the budget or lower selection.at_least."
        )
    return _first_of_equals(heads, {head for head in heads if kept[head].value() > 0.5}, scores, least)


def _least_in_words(least: Mapping[tuple[str, int], int]) -> list[str]:
    """The limits as phrases, one for each number of heads; layers with the same number are only counted."""
    layers: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for layer, number in least.items():
        layers[number].append(layer)
    return [
        f"at least {number} head{'s' * (number > 1)} in "
        + (f"each of {len(same)} layers" if len(same) > 1 else f"{same[0][0]} layer {same[0][1]}")
        for number, same in layers.items()
    ]


def _first_of_equals(
    heads: Sequence[Head], kept: set[Head], scores: Scores, least: Mapping[tuple[str, int], int]
) -> list[Head]:
    """Break ties of score and limit between kept and other heads in favour of the first; `heads` are ranked."""
    alike: dict[tuple[object, ...], list[Head]] = defaultdict(list)
    for head in heads:
        layer = head[:2] if head[:2] in least else None
        alike[scores[head], layer].append(head)
    first = [head for group in alike.values() for head in group[: len(kept & set(group))]]
    return sorted(first, key=place)

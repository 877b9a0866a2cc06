"""Choose the heads that each method keeps, by measurements of the unpruned model, or in steps. No torch.

A choice is written as a target such as `random2-12`: the method and the number of heads kept. A head is (attention,
layer, head), with its original number. Of heads with equal scores the first in table order counts as the better one, so
that a choice is the same everywhere.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heads.base.files import UserError, read_tsv
from heads.base.methods import LIKE, METHOD_FILES, STRATIFIED, SURGEON, files_read_by, least_of
from heads.base.names import ATTENTIONS, HEAD
from heads.base.targets import Target
from heads.model.shape import Head, Place, shape_of
from heads.pruning.rungs import Limits, picked, solved

CHOSEN_COLUMNS = ("method", "budget", *HEAD, "open")
OPTIMAL = "optimal"

Rows = Sequence[Mapping[str, str]]
Scores = Mapping[Head, float]


@dataclass(frozen=True, slots=True)
class Measured:
    """The heads of the unpruned model and the tables of its measurements, by file name."""

    heads: tuple[Head, ...]
    tables: Mapping[str, Rows]


def read_measured(baseline: Path, targets: Sequence[Target]) -> Measured:
    """Read the measurements that these choices need from the folder of the unpruned model.

    Raises UserError for a table that is missing or damaged.
    """
    names = files_read_by(target.method for target in targets)
    tables = {name: read_tsv(baseline / name) for name in names if name.endswith(".tsv")}
    return Measured(shape_of(baseline).heads(), tables)


def scores_of(name: str, measured: Measured) -> dict[Head, float]:
    """The score of each head by a method that is not drawn, nor `surgeon`; the best has the highest score.

    Single-head ablation ranks by the score lost on the dev set. LRP ranks by `relevance_absolute` of the first rule,
    not by the signed share of the paper, whose order a few steps decide. The signed form of importance ranks highest
    first, as its authors do, although masking such a head lowers the loss to first order. Raises UserError if a head
    was not measured.
    """
    if name == "reversed":
        return {head: -score for head, score in scores_of("example_layer", measured).items()}
    rows = measured.tables[METHOD_FILES[name]]
    sign, column = 1, name
    if name == "ablation":
        # The column is named after the metric, BLEU or accuracy.
        sign, column = -1, next((name for name in (rows[0] if rows else {}) if name.endswith("_change")), "")
    elif name == "causal":
        column = "causal_gate"
    elif name == "lrp":
        rows, column = [row for row in rows if row.get("rule") == rows[0].get("rule")], "relevance_absolute"
    elif name != "confidence":
        form = "example" if name == OPTIMAL else name.removesuffix("_layer")
        rows = [row for row in rows if row.get("form") == form]
        column = "importance_normalised" if name.endswith("_layer") else "importance"
    try:
        found = {(row["attention"], int(row["layer"]), int(row["head"])): sign * float(row[column]) for row in rows}
    except (LookupError, TypeError, ValueError):
        raise UserError(f"{METHOD_FILES[name]} is damaged: delete it and run its stage again.") from None
    missing = [head for head in measured.heads if not math.isfinite(found.get(head, math.nan))]
    if missing:
        raise UserError(f"{METHOD_FILES[name]} lacks head {missing[0]}: delete it and run its stage again.")
    return {head: found[head] for head in measured.heads}


def choose(target: Target, measured: Measured, at_least: Mapping[str, int]) -> list[Head]:
    """The heads that a target by a method, such as `random2-12`, keeps, in table order.

    Raises UserError, in one sentence, if no choice meets the limits.
    """
    method, (budget,) = target.method, target.budgets
    try:
        if target.draw is not None:
            drawn = random_scores(measured.heads, target.draw)
            return keep_within_kinds(drawn, measured, budget) if method == STRATIFIED else keep_best(drawn, budget)
        if method == SURGEON:
            return keep_rungs(measured, budget)
        scores = scores_of(method, measured)
        if method != OPTIMAL:
            return keep_best(scores, budget)
        in_layers = Counter((attention, layer) for attention, layer, _ in measured.heads)
        return keep_optimal(scores, budget, least_of(at_least, in_layers, "selection.at_least"))
    except UserError as error:
        raise UserError(f"{target}: {error}") from error


def selection_rows(
    targets: Sequence[Target], measured: Measured, at_least: Mapping[str, int]
) -> list[dict[str, str | int]]:
    """A row with CHOSEN_COLUMNS for every target and head."""
    rows: list[dict[str, str | int]] = []
    for target in targets:
        method, _, budget = target.columns
        kept = set(choose(target, measured, at_least))
        rows += [
            dict(zip(CHOSEN_COLUMNS, (method, budget, *head, int(head in kept)), strict=True))
            for head in measured.heads
        ]
    return rows


def keep_rungs(measured: Measured, budget: int) -> list[Head]:
    """The heads that the surgeon leaves: as many in each layer as lose least together, and the last to go.

    Raises UserError if there are fewer heads, or for a damaged table.
    """
    name = METHOD_FILES[SURGEON]
    ladders: dict[Place, dict[int, float]] = defaultdict(dict)
    last: dict[Head, int] = {}
    try:
        for row in measured.tables[name]:
            place, number = (row["attention"], int(row["layer"])), int(row["last"])
            last[*place, int(row["head"])] = number
            ladders[place][number - 1] = loss = float(row["divergence"])
            if not math.isfinite(loss):
                raise ValueError
    except (LookupError, TypeError, ValueError):
        raise UserError(f"{name} is damaged: delete it and run its stage again.") from None
    if {*last} != {*measured.heads} or any({*ladder} != {*range(len(ladder))} for ladder in ladders.values()):
        raise UserError(f"{name} is of a model with other heads: delete it and run its stage again.")
    whole = {place: {**ladder, len(ladder): 0.0} for place, ladder in ladders.items()}
    check_budget(budget, len(last))
    numbers = picked(whole, [Limits(lambda _: 1.0, budget, budget)])
    assert numbers is not None
    return [head for head in measured.heads if last[head] <= numbers[head[:2]]]


def keep_optimal(scores: Scores, budget: int, least: Mapping[tuple[str, int], int]) -> list[Head]:
    """The heads, at most `budget`, with the largest sum of scores, by integer programming (CBC).

    Sorting gives the same: first each layer's best, up to its least number, then the best of all others above zero.

    least: the smallest number of heads to keep in a layer, by (attention, layer). Fewer heads than the budget are kept
    if the others have scores below zero. Raises UserError if no choice meets the limits.
    """
    import pulp  # here, as it takes a third of a second, and masking heads in steps needs none

    heads = ranked(scores)
    problem = pulp.LpProblem("heads", pulp.LpMaximize)
    kept = dict(zip(heads, (problem.add_variable(f"x{i}", cat="Binary") for i in range(len(heads))), strict=True))
    # The solver's tolerances are absolute, so scores are scaled to at most 1.
    largest = max((abs(score) for score in scores.values()), default=0) or 1.0
    problem += pulp.lpSum(scores[head] / largest * kept[head] for head in heads)
    problem += pulp.lpSum(kept.values()) <= budget
    for layer, number in least.items():
        problem += pulp.lpSum(kept[head] for head in heads if head[:2] == layer) >= number
    if not solved(problem):
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


def place(head: Head) -> tuple[int, int, int]:
    """A head's position in table order, as a sort key."""
    attention, layer, number = head
    return ATTENTIONS.index(attention), layer, number


def ranked(scores: Scores) -> list[Head]:
    """All heads, the best first. Raises ValueError if a score is not finite."""
    for head, score in scores.items():
        if not math.isfinite(score):
            raise ValueError(f"the score of head {head} is {score}, which is not finite")
    return sorted(scores, key=lambda head: (-scores[head], place(head)))


def random_scores(heads: Collection[Head], seed: int) -> dict[Head, float]:
    """Scores of a random order for a control: all orders are equally likely, and a seed always gives the same."""
    order = np.random.default_rng(seed).permutation(len(heads)).tolist()
    return dict(zip(sorted(heads, key=place), map(float, order), strict=True))


def keep_best(scores: Scores, budget: int) -> list[Head]:
    """The `budget` best heads, in table order. Raises UserError if there are fewer heads."""
    check_budget(budget, len(scores))
    return sorted(ranked(scores)[:budget], key=place)


def keep_within_kinds(scores: Scores, measured: Measured, budget: int) -> list[Head]:
    """The best heads of each kind of attention, as many of each as LIKE keeps of `budget`, in table order.

    Raises UserError if there are fewer heads, or one was not measured.
    """
    numbers = Counter(kind for kind, _, _ in keep_best(scores_of(LIKE, measured), budget))
    of_kinds = ({head: score for head, score in scores.items() if head[0] == kind} for kind in ATTENTIONS)
    return [head for kind, own in zip(ATTENTIONS, of_kinds, strict=True) for head in keep_best(own, numbers[kind])]


def check_budget(budget: int, heads: int) -> None:
    """Raise UserError if so many heads cannot be kept."""
    if not 0 <= budget <= heads:
        raise UserError(f"cannot keep {budget} of {heads} heads: keep at least 0 and at most all of them.")


def steps(scores: Scores, share: float = 0.1) -> list[list[Head]]:
    """The heads masked at each step: every step adds a `share` of all heads, the worst that are left.

    The order is fixed once (Michel et al. 2019, sec. 4). Numbers of heads are rounded to the nearest, halves up.
    Raises UserError if `share` is not in (0, 1].
    """
    if not 0 < share <= 1:
        raise UserError(f"cannot mask heads in steps of {share:g}: give a share above 0 and at most 1.")
    worst_first = ranked(scores)[::-1]
    number = math.floor(1 / share + 1e-9)
    return [worst_first[: math.floor(len(worst_first) * share * step + 0.5 + 1e-9)] for step in range(1, number + 1)]

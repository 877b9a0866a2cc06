"""Choose the heads that each criterion keeps, from measurements of the unpruned model. No torch.

A choice is written as a target such as `random2-12`: the method and the number of heads kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heads.base.criteria import MEASURED_IN, files_of, least_of
from heads.base.files import UserError, read_tsv
from heads.base.names import HEAD
from heads.base.targets import Target
from heads.model.shape import Head, shape_of
from heads.pruning.optimal import keep_optimal
from heads.pruning.selection import keep_best, random_scores, reversed_scores

COLUMNS = ("method", "budget", *HEAD, "open")
OPTIMAL = "optimal"

Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Measured:
    """The heads of the unpruned model and the tables of its measurements, by file name."""

    heads: tuple[Head, ...]
    tables: Mapping[str, Rows]


def read_measured(baseline: Path, targets: Sequence[Target]) -> Measured:
    """Read the measurements that these choices need from the folder of the unpruned model.

    Raises UserError for a table that is missing or damaged.
    """
    names = files_of(target.method for target in targets)
    tables = {name: read_tsv(baseline / name) for name in names if name.endswith(".tsv")}
    return Measured(shape_of(baseline).heads(), tables)


def scores_of(name: str, measured: Measured) -> dict[Head, float]:
    """The score of each head by a criterion other than `random`; the best head has the highest score.

    Single-head ablation ranks by the score lost on the dev set. LRP ranks by `relevance_absolute` of the first rule,
    not by the signed share of the paper, whose order a few steps decide. The signed form of importance ranks highest
    first, as its authors do, although masking such a head lowers the loss to first order. Raises UserError if a head
    was not measured.
    """
    if name == "reversed":
        return reversed_scores(scores_of("example_layer", measured))
    rows = measured.tables[MEASURED_IN[name]]
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
        raise UserError(f"{MEASURED_IN[name]} is damaged: delete it and run its stage again.") from None
    missing = [head for head in measured.heads if not math.isfinite(found.get(head, math.nan))]
    if missing:
        raise UserError(f"{MEASURED_IN[name]} lacks head {missing[0]}: delete it and run its stage again.")
    return {head: found[head] for head in measured.heads}


def choose(target: Target, measured: Measured, at_least: Mapping[str, int]) -> list[Head]:
    """The heads that a target by a criterion, such as `random2-12`, keeps, in table order.

    Raises UserError, in one sentence, if no choice meets the limits.
    """
    method, (budget,) = target.method, target.budgets
    try:
        if target.draw is not None:
            return keep_best(random_scores(measured.heads, target.draw), budget)
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
    """A row with COLUMNS for every target and head."""
    rows: list[dict[str, str | int]] = []
    for target in targets:
        method, _, budget = target.columns
        kept = set(choose(target, measured, at_least))
        rows += [dict(zip(COLUMNS, (method, budget, *head, int(head in kept)), strict=True)) for head in measured.heads]
    return rows

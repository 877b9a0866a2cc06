"""When models trained from scratch catch up with pruned models of the same heads, by their dev curves."""

from __future__ import annotations

from typing import Any

import pandas as pd

from heads.tables.pruning import heads_left
from heads.tables.reading import RUN_COLUMNS, Frames
from heads.tables.settling import LAST, fall_of

Curves = dict[tuple[object, ...], pd.DataFrame]
"""The evaluations of each training on the dev set, in order, by the values of RUN_COLUMNS."""
BETTER = {"dev_loss": -1, "dev_bleu": 1}
"""Scores on the dev set, with 1 if higher is better and -1 if lower is better."""
COLUMNS = (
    *("experiment", "scope", "lam", "keep", "seed", "heads", "of", "updates_scratch"),
    *(f"{score}{of}" for score in BETTER for of in ("_unpruned", "_pruned", "_scratch", "_caught_up_at")),
    *("dev_loss_fall_percent_scratch", "dev_bleu_rise_scratch"),
)


def scratch_curve_table(frames: Frames) -> pd.DataFrame:
    """A row for each model that was trained from scratch with the heads of a pruned one.

    `_pruned`: of the pruned model at its end, or of the same heads cut out of the unpruned model and fine-tuned, if
    that was done. `_caught_up_at`: the first update at which scratch is no worse, empty if it never is. How fast
    scratch still improves: the percentage of its dev loss and the BLEU gained in its last tenth.
    """
    curves = curves_of(frames)
    left = heads_left(frames["model.json"])
    rows = []
    for row in left[left["kind"] == "scratch"].to_dict("records"):
        run = tuple(row[column] for column in RUN_COLUMNS)
        own = {"heads": row["total"], **{column: row[column] for column in COLUMNS if column in row}}
        rows.append(own | _compared(curves, run))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def curves_of(frames: Frames) -> Curves:
    """The curves of all runs whose `train.jsonl` is in frames."""
    by_run = frames["train.jsonl"].groupby(list(RUN_COLUMNS), sort=False)
    return {run: curve.sort_values("update") for run, curve in by_run}


def _pruned_curve(curves: Curves, run: tuple[object, ...]) -> pd.DataFrame | None:
    """The curve of the pruned model with the heads of a run from scratch: fine-tuned, or else that of its gates."""
    experiment, _, *rest = run
    found = [curves.get((experiment, kind, *rest)) for kind in ("selected", "gates")]
    return next((curve for curve in found if curve is not None), None)


def _compared(curves: Curves, run: tuple[object, ...]) -> dict[str, Any]:
    """The columns that compare the curve of a run from scratch with its pruned and its unpruned model."""
    scratch, pruned = curves[run], _pruned_curve(curves, run)
    unpruned = curves.get((run[0], "baseline", "", "", "", "", run[-1]))
    last = int(scratch["update"].iloc[-1])
    found: dict[str, Any] = {"updates_scratch": last, "dev_loss_fall_percent_scratch": fall_of(scratch, last)}
    for score, sign in BETTER.items():
        ends = {"unpruned": unpruned, "pruned": pruned, "scratch": scratch}
        found |= {f"{score}_{name}": None if curve is None else curve[score].iloc[-1] for name, curve in ends.items()}
        if pruned is not None:
            there = scratch[sign * (scratch[score] - pruned[score].iloc[-1]) >= 0]["update"]
            found[f"{score}_caught_up_at"] = None if there.empty else int(there.iloc[0])
    before = scratch[scratch["update"] <= (1 - LAST) * last]
    rise = None if before.empty else scratch["dev_bleu"].iloc[-1] - before["dev_bleu"].iloc[-1]
    return found | {"dev_bleu_rise_scratch": rise}

"""Points of the curves of scores against heads left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from heads.base.targets import Target
from heads.explore.wording import asked_of, name_of, number, run_in
from heads.tables.picking import is_control

OTHER_SCORES = {
    "score_scratch": ("from scratch", "scratch"),
    "score_trained_on": ("same heads, trained on", "selected"),
}
"""By column of table_pruning.tsv: the series, and the kind of run that has this score."""


def points_of(tables: Mapping[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """Score and number of heads of each model: pruned ones, the same from scratch, the control and other choices.

    tables: `pruning` and `selection` of one experiment and seed, if they exist.
    """
    points = _pruned(tables["pruning"]) if "pruning" in tables else []
    return points + (_chosen(tables["selection"]) if "selection" in tables else [])


def _pruned(table: pd.DataFrame) -> list[dict[str, Any]]:
    table = table.fillna(dict.fromkeys(("scope", "method", "lam", "keep"), ""))
    points = []
    for row, control in zip(table.to_dict("records"), is_control(table), strict=True):
        run = run_in(row)
        series = "unpruned" if run.kind == "baseline" else "control" if control else "pruned"
        place = {"scope": row["scope"], "kept": int(row["total"]), "of": int(row["of"])}
        name = name_of(run, whole=place["kept"] == place["of"])
        point = {"run": run.folder, "series": series, "name": name, **place, "score": number(row["score"])}
        points.append(point)
        for column, (name, kind) in OTHER_SCORES.items():
            if series == "pruned" and number(row[column]) is not None:
                folder = run.folder.replace("pruned", kind, 1)
                other = {"run": folder, "series": name, "name": f"{name}, {asked_of(run.target)}"}
                points.append(point | other | {"score": number(row[column])})
    return points


def _chosen(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Points of heads chosen at random or by other means than gates, either masked or fine-tuned."""
    points = []
    for row in table.to_dict("records"):
        if row["treatment"] not in ("masked", "trained on") or Target.parse(str(row["target"])).hard_concrete:
            continue
        folder = "" if row["treatment"] == "masked" else f"selected/all/{row['target']}/seed-{row['seed']}"
        chosen = "random" if row["method"] == "random" else "other choices"
        points.append({
            "run": folder, "series": f"{chosen}, {row['treatment']}", "name": f"{row['target']}, {row['treatment']}",
            "scope": "all", "kept": int(row["kept"]), "of": int(row["of"]), "score": number(row["score"]),
        })  # fmt: skip
    return points

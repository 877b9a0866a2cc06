"""The table of models with gates on hidden units: what is left of them, layer by layer, and what it costs."""

import pandas as pd

from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.base.targets import CONTROL
from heads.tables.picking import heads_left
from heads.tables.reading import RUN_COLUMNS, SCORED, Frames

UNIT_COLUMNS = (
    *(*RUN_COLUMNS, *ATTENTIONS, "total", "of", "units", "of_units", *FEEDFORWARDS),
    *("metric", "score", "score_control", "score_baseline", "score_minus_control", "score_minus_baseline"),
)


def units_table(frames: Frames) -> pd.DataFrame:
    """A row for each baseline and each model pruned in a scope with hidden units: heads and units left, and its score.

    The columns of feed-forward stacks have the units left in each layer, first to last. The control is fine-tuned for
    as long at lambda = 0.
    """
    facts = frames["model.json"].drop_duplicates(list(RUN_COLUMNS))[[*RUN_COLUMNS, *FEEDFORWARDS, "feedforward"]]
    left = heads_left(frames["model.json"]).merge(facts, on=list(RUN_COLUMNS))
    rows = left.merge(frames[SCORED], on=list(RUN_COLUMNS))
    scores = {tuple(row[column] for column in RUN_COLUMNS): row["score"] for row in rows.to_dict("records")}
    table = []
    for row in rows.to_dict("records"):
        layers = [int(units) for stack in FEEDFORWARDS for units in row[stack].split()]
        control, baseline = (
            scores.get((row["experiment"], *run, row["seed"]))
            for run in (("pruned", row["scope"], *CONTROL.columns), ("baseline", "", "", "", ""))
        )
        others = {"control": control, "baseline": baseline}
        table.append(
            {
                **row,
                **{"units": sum(layers), "of_units": int(row["feedforward"]) * len(layers)},
                **{f"score_{name}": score for name, score in others.items()},
                **{f"score_minus_{n}": None if score is None else row["score"] - score for n, score in others.items()},
            }
        )
    return pd.DataFrame(table, columns=list(UNIT_COLUMNS))

"""How encoder heads acquire roles during training: the best head by every measure at each checkpoint."""

from __future__ import annotations

import pandas as pd

from heads.tables.reading import Frames

COLUMNS = (
    *("experiment", "seed", "update", "finished", "role", "name", "layer", "head"),
    *("accuracy", "low", "high", "baseline", "above_baseline", "gained"),
)
MEASURE = ["experiment", "seed", "role", "name"]
ANY_OFFSET = "any offset"
MEAN = "mean"
"""The name in rows of the mean confidence of all heads; rows of the most confident head have ""."""


def dynamics_table(frames: Frames) -> pd.DataFrame:
    """A row for each checkpoint and measure, with its best encoder head; positional measures use the best offset.

    `above_baseline` is the accuracy of a relation's best head minus that of the best fixed offset. `gained`, in rows of
    the finished model, is the accuracy of its best head minus that of the best head at the last checkpoint in the first
    half of its updates.
    """
    rows = frames["dynamics.tsv"]
    positional = rows["role"].isin(["positional", "positional_words"])
    rows = rows.assign(name=rows["name"].where(~positional, ANY_OFFSET))
    rows = rows[rows["name"] != "rarest"]  # see roles.tsv instead; the other row of rare words decides
    at = [*MEASURE, "update", "finished"]
    best = rows.dropna(subset=["accuracy"]).sort_values("accuracy", kind="stable").groupby(at, sort=False).tail(1)
    confidence = rows[rows["role"] == "confidence"]
    means = confidence.assign(name=MEAN).groupby(at, as_index=False)["accuracy"].mean()
    table = pd.concat([best, means], ignore_index=True)
    table["place"] = table["role"].map(list(rows["role"].unique()).index)
    table = table.sort_values(["experiment", "seed", "finished", "update", "place"], kind="stable")
    table = table.assign(above_baseline=table["accuracy"] - table["baseline"], gained=float("nan"))
    for _, measure in table.groupby(MEASURE, sort=False):
        end = measure[measure["finished"] == 1]
        half = measure[(measure["finished"] == 0) & (measure["update"] <= end["update"].max() / 2)]
        if len(half):
            table.loc[end.index, "gained"] = float(end["accuracy"].iloc[0] - half["accuracy"].iloc[-1])
    return table[list(COLUMNS)].reset_index(drop=True)

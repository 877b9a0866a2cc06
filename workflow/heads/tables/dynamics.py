"""How roles of encoder heads come about in a training: at each checkpoint the best head of every measure."""

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
"""The name of rows of all heads' mean confidence; of the most confident head it is ""."""


def dynamics_table(frames: Frames) -> pd.DataFrame:
    """A row a checkpoint and measure: its best encoder head then, for positional measures at its best offset.

    `above_baseline` is what a relation's best head has above the best fixed offset. `gained`, in rows of the finished
    model, is by how much its best head is above the best one at the last checkpoint of the first half of its updates.
    """
    rows = frames["dynamics.tsv"]
    positional = rows["role"].isin(["positional", "positional_words"])
    rows = rows.assign(name=rows["name"].where(~positional, ANY_OFFSET))
    rows = rows[rows["name"] != "rarest"]  # to be read in roles.tsv; the other row of rare words decides
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

"""What cross-attention heads do: how well they align words, before and after pruning, and what they look at."""

import pandas as pd

from heads.tables.picking import first_of, run_order
from heads.tables.reading import RUN_COLUMNS, Frames
from heads.tables.roles import NONE, SEPARATOR

LAYER = [*RUN_COLUMNS, "layer"]
BEST = {
    **{name: f"best_{name}" for name in ("head", "aer", "aer_low", "aer_high", "precision", "recall")},
    **{name: name for name in ("offset", "offset_aer")},
    **{name: f"aer_{name}" for name in ("gain", "gain_low", "gain_high")},
}
"""Columns of the best head's row, and their names in the table of alignment."""
PLACE = ["experiment", "seed", "layer", "head"]
CROSS_ATTENTION_TABLE_COLUMNS = (
    *PLACE,
    *("role", "share", "low", "high", "offset", "offset_share", "gain_low", "gain_high"),
    *("holds", "most", "cases", "pairs", "linked_by", "information"),
)


def best_heads(rows: pd.DataFrame) -> pd.DataFrame:
    """The row of the head with the lowest error rate in each run and layer; rows of one step."""
    return rows.sort_values(["aer", "head"], kind="stable").drop_duplicates(LAYER)


def alignment_table(frames: Frames) -> pd.DataFrame:
    """A row for each run and decoder layer, including layers without a live head.

    For the first step in the settings: how many heads align and which, and the columns of BEST for the head with the
    lowest error rate, which was chosen on the pairs that it is reported on. For the second step, if it was measured:
    the lowest error rate and its head.
    """
    model, rows = frames["model.json"], frames["alignment_heads.tsv"]
    layers = model[model["attention"] == "dec_enc"].groupby(LAYER, sort=False)["live"]
    table = layers.agg(live="sum", of="size").reset_index()
    first = first_of(rows, "step")
    aligning = first[first["aligns"] == 1].groupby(LAYER, sort=False)["head"]
    found = aligning.agg(aligning="size", aligning_heads=lambda heads: SEPARATOR.join(map(str, sorted(heads))))
    table = table.merge(found.reset_index(), on=LAYER, how="left").fillna({"aligning": 0, "aligning_heads": NONE})
    table = table.merge(best_heads(first)[[*LAYER, "step", *BEST]].rename(columns=BEST), on=LAYER, how="left")
    other = first_of(rows.drop(first.index), "step")
    columns = {"step": "other_step", "head": "other_head", "aer": "other_aer"}
    table = table.merge(best_heads(other)[[*LAYER, *columns]].rename(columns=columns), on=LAYER, how="left")
    order = run_order(table.assign(place=range(len(table))))["place"]
    return table.loc[order].fillna({"step": "", "other_step": ""}).reset_index(drop=True)


def cross_attention_table(frames: Frames) -> pd.DataFrame:
    """A row for each cross-attention head of the unpruned model and each role, sorted by head.

    `most` marks the role of each head with the largest share. The other columns are explained in
    `heads.analysis.cross_attention_roles`.
    """
    rows = frames["cross_attention_roles.tsv"].sort_values(PLACE, kind="stable", ignore_index=True)
    largest = rows.groupby(PLACE)["share"].transform("max")
    return rows.assign(most=(rows["share"] == largest).astype(int))[[*CROSS_ATTENTION_TABLE_COLUMNS]]

"""The table of cross-attention roles: whether a head attends to the source of the current, last or next token."""

from __future__ import annotations

import pandas as pd

from heads.tables.reading import Frames

KEYS = ["experiment", "seed", "layer", "head"]
COLUMNS = (
    *KEYS,
    *("role", "share", "low", "high", "offset", "offset_share", "gain_low", "gain_high"),
    *("holds", "most", "cases", "pairs", "linked_by", "information"),
)


def cross_attention_table(frames: Frames) -> pd.DataFrame:
    """A row for each cross-attention head of the unpruned model and each role, sorted by head.

    `most` marks the role of each head with the largest share. The other columns are explained in
    `heads.analysis.cross_attention_roles`. frames: `cross_attention_roles.tsv`.
    """
    rows = frames["cross_attention_roles.tsv"].sort_values(KEYS, kind="stable", ignore_index=True)
    largest = rows.groupby(KEYS)["share"].transform("max")
    return rows.assign(most=(rows["share"] == largest).astype(int))[[*COLUMNS]]

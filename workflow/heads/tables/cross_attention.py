"""Of which target token each cross-attention head looks at the source: the one being written, the last, or the next."""

from __future__ import annotations

import pandas as pd

from heads.tables.reading import Frames

HEAD = ["experiment", "seed", "layer", "head"]
COLUMNS = (
    *HEAD,
    *("role", "share", "low", "high", "offset", "offset_share", "gain_low", "gain_high"),
    *("holds", "most", "cases", "pairs", "linked_by", "information"),
)


def cross_attention_table(frames: Frames) -> pd.DataFrame:
    """A row for each head of the unpruned model and each role, in the order of heads.

    `most` marks the role of each head whose share is largest. The rest is explained in
    `heads.analysis.cross_attention_roles`. frames: `cross_attention_roles.tsv`.
    """
    rows = frames["cross_attention_roles.tsv"].sort_values(HEAD, kind="stable", ignore_index=True)
    largest = rows.groupby(HEAD)["share"].transform("max")
    return rows.assign(most=(rows["share"] == largest).astype(int))[[*COLUMNS]]

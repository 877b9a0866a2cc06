"""The scoreboard: a row for each claim of the papers, with the paper's number and every experiment's result."""

from __future__ import annotations

import pandas as pd

from heads.tables.claims import decided_claims, stated
from heads.tables.claims_heads import RELEVANCE_CLAIMS
from heads.tables.reading import Frames
from heads.tables.relevance import side_by_side

STATED = (
    *("study", "topic", "name", "metric", "claim", "measure", "rule", "holds_if", "limit", "margin", "source", "tag"),
    *("paper", "paper_of"),
)
"""Columns of the papers' files of claims, and the reading of relevance that decides."""
FOUND = {"ours": "ours", "of": "of", "relative_percent": "relative_percent", "holds": "verdict"}
FOUND |= {"other_readings": "other_readings"}
"""Columns of results in the table of claims, and their names here, which precede the experiment's name."""


def scoreboard_table(frames: Frames, *papers: pd.DataFrame) -> pd.DataFrame:
    """The scoreboard of the claims in `papers`; see `heads.tables.claims.claims_table`."""
    return board_of(decided_claims(frames, *papers), *papers)


def board_of(found: pd.DataFrame, *papers: pd.DataFrame) -> pd.DataFrame:
    """A row for each claim about a metric of `found`, in the order of `papers`: STATED, then FOUND by experiment.

    found: tables of decided claims. Relevance is read as in the paper, and `other_readings` has the verdicts of other
    readings where they differ, see `heads.tables.relevance`. Several seeds are represented by their mean.
    """
    rule = next(iter(side_by_side(rule for rule in found["rule"] if rule)), "")
    board = stated(*papers).rename(columns={"condition": "holds_if"})
    board["rule"] = board["id"].isin(RELEVANCE_CLAIMS).map({True: rule, False: ""})
    board = board.loc[board["metric"].isin(found["metric"]), list(STATED)]
    for experiment, rows in found.groupby("experiment", sort=False):
        of_all_seeds = rows["seed"] == "mean"
        own = rows[of_all_seeds] if of_all_seeds.any() else rows
        own = own[["metric", "claim", "measure", "rule", *FOUND]]
        # The mean of counts has no total if the totals differ between seeds.
        own = own.assign(**{number: pd.to_numeric(own[number]) for number in ("ours", "of", "relative_percent")})
        own = own.rename(columns={column: f"{name}_{experiment}" for column, name in FOUND.items()})
        board = board.merge(own, on=["metric", "claim", "measure", "rule"], how="left", validate="one_to_one")
        # There is no row if relevance was not measured as in the paper.
        board = board.fillna({f"{FOUND[column]}_{experiment}": "" for column in ("holds", "other_readings")})
    return board


def experiments_of(board: pd.DataFrame) -> list[str]:
    """The experiments on a scoreboard, in their order."""
    verdict = f"{FOUND['holds']}_"
    return [name.removeprefix(verdict) for name in board.columns if name.startswith(verdict)]

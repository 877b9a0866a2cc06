"""The scoreboard: a row a claim of the papers, the paper's number first, then what every experiment found."""

from __future__ import annotations

import pandas as pd

from heads.tables.claims import RELEVANCE_CLAIMS, decided_claims, stated
from heads.tables.reading import Frames
from heads.tables.relevance import side_by_side

STATED = (
    "study",
    "topic",
    "name",
    "metric",
    "claim",
    "measure",
    "rule",
    "holds_if",
    "limit",
    "margin",
    "source",
    "tag",
    "paper",
    "paper_of",
)
"""Columns of the papers' files of claims, and the reading of relevance that decides."""
FOUND = {
    "ours": "ours",
    "of": "of",
    "relative_percent": "relative_percent",
    "holds": "verdict",
    "other_readings": "other_readings",
}
"""What the table of claims calls what was found, and what it is here, in front of the experiment's name."""


def scoreboard_table(frames: Frames, *papers: pd.DataFrame) -> pd.DataFrame:
    """The board of what results say of the claims in `papers`, see `heads.tables.claims.claims_table`."""
    return board_of(decided_claims(frames, *papers), *papers)


def board_of(found: pd.DataFrame, *papers: pd.DataFrame) -> pd.DataFrame:
    """A row a claim about a metric of `found`, in the order of `papers`: STATED, then what FOUND has of experiments.

    found: tables of decided claims. Relevance is read as the paper writes it, and beside the verdict stands what other
    readings say otherwise, see `heads.tables.relevance`. Of several seeds there is the mean.
    """
    rule = next(iter(side_by_side(rule for rule in found["rule"] if rule)), "")
    board = stated(*papers).rename(columns={"condition": "holds_if"})
    board["rule"] = board["id"].isin(RELEVANCE_CLAIMS).map({True: rule, False: ""})
    board = board.loc[board["metric"].isin(found["metric"]), list(STATED)]
    for experiment, rows in found.groupby("experiment", sort=False):
        of_all_seeds = rows["seed"] == "mean"
        own = rows[of_all_seeds] if of_all_seeds.any() else rows
        own = own[["metric", "claim", "measure", "rule", *FOUND]]
        # A mean over seeds that count out of different numbers is out of None.
        own = own.assign(**{number: pd.to_numeric(own[number]) for number in ("ours", "of", "relative_percent")})
        own = own.rename(columns={column: f"{name}_{experiment}" for column, name in FOUND.items()})
        board = board.merge(own, on=["metric", "claim", "measure", "rule"], how="left", validate="one_to_one")
        # Where relevance was not measured as the paper writes it there is no row.
        board = board.fillna({f"{FOUND[column]}_{experiment}": "" for column in ("holds", "other_readings")})
    return board


def experiments_of(board: pd.DataFrame) -> list[str]:
    """The experiments on a scoreboard, in their order."""
    verdict = f"{FOUND['holds']}_"
    return [name.removeprefix(verdict) for name in board.columns if name.startswith(verdict)]

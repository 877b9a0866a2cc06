"""The papers' claims beside an experiment's results, each with its figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import pandas as pd

from heads.explore.needs import figure_of
from heads.explore.wording import number

NUMBERS = ("paper", "paper_of", "ours", "of", "relative_percent", "low", "high", "p_value")
TEXTS = ("claim", "rule", "other_readings", "source", "tag")
OF_ALL = "figures"
"""The folder of figures that show all experiments in one."""
KEYS = ["metric", "claim", "measure", "rule"]


def claims_of(
    experiment: str, claims: pd.DataFrame | None, board: pd.DataFrame | None, figures: Sequence[str]
) -> list[dict[str, Any]]:
    """A record for each claim, in the order of the scoreboard; see `heads.explore.content`.

    claims, board: table_claims.tsv and table_scoreboard.tsv of all experiments. With several seeds, their mean is used.
    figures: paths of figures relative to the page, of this experiment or of all in one.
    """
    if claims is None or board is None:
        return []
    own = claims[claims["experiment"] == experiment]
    means = own[own["seed"].astype(str) == "mean"]
    own = (means if len(means) else own).fillna(dict.fromkeys((*TEXTS, "holds"), ""))
    both = board[[*KEYS, "study", "topic", "name"]].fillna({"rule": ""}).merge(own, on=KEYS, validate="one_to_one")
    return [
        {
            **{name: row[name] for name in ("study", "topic", "name", *TEXTS)},
            **{name: number(row[name]) for name in NUMBERS},
            "verdict": row["holds"] or "not measured",
            "figure": _path_of(figure_of(row["source"], row["topic"]), experiment, figures),
        }
        for row in both.to_dict("records")
    ]


def _path_of(name: str, experiment: str, figures: Sequence[str]) -> str:
    """Path of the figure with this name, of this experiment or of all in one; "" if there is none."""
    mine = [path for path in figures if PurePath(path).stem == name]
    return next((path for path in mine if PurePath(path).parent.name in (experiment, OF_ALL)), "")

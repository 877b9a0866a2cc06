"""Select rows of a frame: the control, models pruned by gates, the first rule or the first trees."""

from __future__ import annotations

import pandas as pd

from heads.base.targets import CONTROL, Target
from heads.tables.reading import RUN_COLUMNS


def is_control(runs: pd.DataFrame) -> pd.Series:
    """Whether each row of a frame with RUN_COLUMNS is of the control, which closes no head; see `Target.is_control`."""
    return runs["lam"] == CONTROL.columns[1]


def pruned_by_gates(runs: pd.DataFrame) -> pd.DataFrame:
    """The rows of models pruned by gates, with a column `target` that names their penalty or number of heads.

    runs: a frame with RUN_COLUMNS. The models are those with a fixed penalty, as in the papers, or if there are none
    those driven to a number of heads.
    """
    penalised = (runs["lam"] != "") & ~is_control(runs)
    chosen = runs[penalised] if penalised.any() else runs[(runs["keep"] != "") & (runs["method"] == "")]
    words = [f"λ {lam}" if lam else f"to {keep}" for lam, keep in zip(chosen["lam"], chosen["keep"], strict=True)]
    return chosen.assign(target=words)


def in_order(targets: pd.DataFrame) -> list[str]:
    """The distinct `target` values of `pruned_by_gates`: penalties rising, numbers of heads falling."""
    listed = targets.drop_duplicates("target")[["target", "lam", "keep"]].itertuples(index=False)
    places = {word: Target.of_penalty(lam) if lam else Target.of_choice("gates", keep) for word, lam, keep in listed}
    return sorted(places, key=places.__getitem__)


def first_of(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows with the first value of `column` in their run, such as its first rule or its first trees."""
    first = frame.groupby(list(RUN_COLUMNS), sort=False)[column].transform("first")
    return frame[frame[column] == first]

"""Rows of a frame: of the control, of models that gates took heads from, of the first rule or the first trees."""

from __future__ import annotations

import pandas as pd

from heads.base.targets import CONTROL, Target
from heads.tables.reading import RUN_COLUMNS


def is_control(runs: pd.DataFrame) -> pd.Series:
    """Which rows of a frame with RUN_COLUMNS are of the control, whose gates close no head; see `Target.is_control`."""
    return runs["lam"] == CONTROL.columns[1]


def has_penalty(runs: pd.DataFrame) -> pd.Series:
    """Which rows are of heads that cost a fixed penalty above zero; see `Target.has_penalty`."""
    return (runs["lam"] != "") & ~is_control(runs)


def pruned_by_gates(runs: pd.DataFrame) -> pd.DataFrame:
    """The rows of models that gates took heads from, `target` saying in words what they were given.

    runs: a frame with RUN_COLUMNS. With a fixed penalty, as the papers have them; of an experiment without any, those
    that were driven to a number of heads.
    """
    penalised = has_penalty(runs)
    chosen = runs[penalised] if penalised.any() else runs[(runs["keep"] != "") & (runs["method"] == "")]
    words = [f"λ {lam}" if lam else f"to {keep}" for lam, keep in zip(chosen["lam"], chosen["keep"], strict=True)]
    return chosen.assign(target=words)


def in_order(targets: pd.DataFrame) -> list[str]:
    """Each `target` of `pruned_by_gates` once: penalties rising, numbers of heads falling."""
    listed = targets.drop_duplicates("target")[["target", "lam", "keep"]].itertuples(index=False)
    places = {word: Target.of_penalty(lam) if lam else Target.of_choice("gates", keep) for word, lam, keep in listed}
    return sorted(places, key=places.__getitem__)


def first_of(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows that have the first value of `column` in their run: its first rule, its first trees."""
    first = frame.groupby(list(RUN_COLUMNS), sort=False)[column].transform("first")
    return frame[frame[column] == first]

"""Several seeds: the mean and the spread of rows that differ in nothing but the seed."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from heads.base.names import DEVIATION, MEAN

NEVER_AVERAGED = ("paper", "p_value", "low", "high", "chance")
"""Beginnings of columns that belong to a row and not to what was measured."""

FACTS = (
    *("layer", "head", "head_chosen", "head_oracle", "best_head", "other_head", "offset", "masked", "draw"),
    *("layers", "heads", "of", "sentences", "limit", "margin"),
)
"""Numbers that are names or sizes: the mean of two head numbers is no head."""


def with_spread(frame: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """After each group of rows that agree in `keys`, its mean and its sample standard deviation over the seeds.

    frame: a row a seed; `seed` becomes "mean" and "sd" in the rows added, which come only where a group has several
    seeds. Text and facts are kept in the mean where all seeds agree, and left empty else and in the deviation, where
    only the keys stay. A value that some seeds lack is averaged over the others; it needs two for a deviation.
    Raises ValueError if rows with one seed agree in `keys`.
    """
    if frame["seed"].nunique() < 2:
        return frame
    parts = []
    for values, group in frame.groupby(list(keys), sort=False, dropna=False):
        if group["seed"].duplicated().any():
            raise ValueError(f"rows {values} have the same seed twice: {', '.join(keys)} do not tell rows apart")
        parts.append(group.astype(object))
        if group["seed"].nunique() > 1:
            parts.append(_summary(group, keys))
    return pd.concat(parts, ignore_index=True)


def _summary(group: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    mean: dict[str, object] = {}
    deviation: dict[str, object] = {}
    for column, values in group.items():
        name = str(column)
        if name in keys:
            mean[name] = deviation[name] = values.iloc[0]
        elif _is_measured(name, values):
            mean[name], deviation[name] = values.mean(), values.std(ddof=1)
        else:
            mean[name] = values.iloc[0] if values.nunique(dropna=False) == 1 else None
            deviation[name] = None
    rows = pd.DataFrame([mean | {"seed": MEAN}, deviation | {"seed": DEVIATION}], columns=group.columns)
    return rows.astype(object)


def _is_measured(name: str, values: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(values) and name not in FACTS and not name.startswith(NEVER_AVERAGED)

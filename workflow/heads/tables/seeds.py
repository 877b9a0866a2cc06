"""Mean and standard deviation over seeds, of rows that differ only by their seed."""

from collections.abc import Sequence

import pandas as pd

from heads.base.names import DEVIATION, MEAN

NEVER_AVERAGED = ("paper", "p_value", "low", "high", "chance")
"""Prefixes of columns that belong to a single row and are not measurements."""

FACTS = (
    *("layer", "head", "head_chosen", "head_oracle", "best_head", "other_head", "offset", "masked", "draw"),
    *("layers", "heads", "of", "sentences", "limit", "margin"),
)
"""Numbers that are names or sizes: the mean of two head numbers is not a head."""


def with_spread(frame: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Add after each group of rows that agree in `keys` its mean and sample standard deviation over the seeds.

    frame: a row for each seed. The added rows have "mean" and "sd" as `seed`, and exist only for groups with several
    seeds. The mean keeps text and facts if all seeds agree and is empty otherwise; the deviation keeps only the keys. A
    value that some seeds lack is averaged over the others; a deviation needs two values. Raises ValueError if a group
    has the same seed twice.
    """
    if frame["seed"].nunique() < 2:
        return frame
    parts = []
    for values, group in frame.groupby(list(keys), sort=False, dropna=False):
        if group["seed"].duplicated().any():
            raise ValueError(f"rows {values} have the same seed twice: {', '.join(keys)} do not identify rows")
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
        elif pd.api.types.is_numeric_dtype(values) and name not in FACTS and not name.startswith(NEVER_AVERAGED):
            mean[name], deviation[name] = values.mean(), values.std(ddof=1)
        else:
            mean[name] = values.iloc[0] if values.nunique(dropna=False) == 1 else None
            deviation[name] = None
    rows = pd.DataFrame([mean | {"seed": MEAN}, deviation | {"seed": DEVIATION}], columns=group.columns)
    return rows.astype(object)

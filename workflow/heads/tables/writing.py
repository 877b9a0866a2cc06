"""Tables as tab-separated text, with as many decimals as a number deserves."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from heads.files import write_tsv

DECIMALS = {"bleu": 2, "percent": 1, "points": 1, "per_sentence": 1, "share": 3, "loss": 4}
"""Decimals by a word in the column's name; other numbers are written whole."""


def write_frame(path: Path, frame: pd.DataFrame) -> None:
    """Write a data frame; a missing number becomes an empty cell."""
    columns = list(frame.columns)
    rows = [
        {column: _cell(value, column) for column, value in zip(columns, row, strict=True)}
        for row in frame.itertuples(index=False, name=None)
    ]
    write_tsv(path, rows, columns)


def _cell(value: object, column: str) -> str:
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return ""
    decimals = next((count for word, count in DECIMALS.items() if word in column), 0)
    # Adding zero turns the -0.00 of a rounded loss into 0.00.
    return f"{round(float(value), decimals) + 0.0:.{decimals}f}"  # type: ignore[arg-type]

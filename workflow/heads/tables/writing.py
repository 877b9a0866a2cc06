"""Tables as tab-separated text, with a suitable number of decimals."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from heads.base.files import write_tsv

DECIMALS = {"score": 2, "bleu": 2, "percent": 1, "points": 1, "per_sentence": 1, "share": 3, "loss": 4, "rho": 3}
DECIMALS |= {"p_value": 4, "lrp": 4, "confidence": 3, "accuracy": 3, "gain": 3, "survival": 3, "importance": 3}
DECIMALS |= {"aer": 3, "precision": 3, "recall": 3}
"""Decimals by a word in the column's name; other numbers are written as integers if whole, else with four digits."""


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
    number = float(value)  # type: ignore[arg-type]
    # Match whole words, because a column may end in the name of an experiment.
    decimals = next((count for word, count in DECIMALS.items() if f"_{word}_" in f"_{column}_"), None)
    if decimals is None:
        return f"{number:.0f}" if number.is_integer() else f"{number:.4g}"
    # Adding zero turns the -0.00 of a rounded loss into 0.00.
    return f"{round(number, decimals) + 0.0:.{decimals}f}"

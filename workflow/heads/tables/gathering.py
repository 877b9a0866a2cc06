"""A table from the folders of runs, or from frames; tables as tab-separated text."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from heads.base.files import write_tsv
from heads.base.modules import named_function
from heads.tables.catalogue import TABLES
from heads.tables.reading import Frames, load_reference, load_runs
from heads.tables.seeds import with_spread

DECIMALS = {"score": 2, "bleu": 2, "percent": 1, "points": 1, "per_sentence": 1, "share": 3, "loss": 4, "rho": 3}
DECIMALS |= {"p_value": 4, "lrp": 4, "confidence": 3, "accuracy": 3, "gain": 3, "survival": 3, "importance": 3}
DECIMALS |= {"aer": 3, "precision": 3, "recall": 3}
"""Decimals by a word in the column's name; other numbers are written as integers if whole, else with four digits."""


def table_of_runs(name: str, runs: Sequence[Path], compared_with: Mapping[str, str] | None = None) -> pd.DataFrame:
    """The table with a name in TABLES, from the folders of runs; compared_with: as in `frames_of`."""
    return table_of_frames(name, load_runs(TABLES[name].need, runs, compared_with))


def table_of_frames(name: str, frames: Frames) -> pd.DataFrame:
    """The table with a name in TABLES, from the frames that it needs."""
    asked = TABLES[name]
    table: pd.DataFrame = named_function(asked.function)(frames, *map(load_reference, asked.need.reference))
    return with_spread(table, asked.keys) if asked.keys else table


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

"""Every table by name: the function that makes it, and its key columns across seeds; tables as tab-separated text."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from heads.base.files import write_tsv
from heads.tables.claims import decided_claims, scoreboard_table
from heads.tables.cross_attention import alignment_table, cross_attention_table
from heads.tables.curves import scratch_curve_table
from heads.tables.measures import correlations_table, measures_table
from heads.tables.michel import checkpoints_table, curve_table, heads_table, layers_table, speed_table
from heads.tables.needs import NEEDS
from heads.tables.pruning import pruning_table, spare_table
from heads.tables.reading import Frames, load_reference, load_runs
from heads.tables.roles import dependencies_table, dynamics_table, role_drift, roles_table
from heads.tables.seeds import with_spread
from heads.tables.selection import selection_table
from heads.tables.units import units_table

TABLES: dict[str, Callable[..., pd.DataFrame]] = {
    "pruning": pruning_table,
    "scratch_curve": scratch_curve_table,
    "spare": spare_table,
    "units": units_table,
    "dependencies": dependencies_table,
    "roles": roles_table,
    "dynamics": dynamics_table,
    "alignment": alignment_table,
    "cross_attention": cross_attention_table,
    "speed": speed_table,
    "role_drift": role_drift,
    "michel_table1": heads_table,
    "michel_table2": layers_table,
    "michel_masking_curve": curve_table,
    "michel_checkpoints": checkpoints_table,
    "measures": measures_table,
    "correlations": correlations_table,
    "selection": selection_table,
    "claims": decided_claims,
    "scoreboard": scoreboard_table,
}

KEYS = {
    "pruning": ("experiment", "kind", "scope", "lam", "keep"),
    "scratch_curve": ("experiment", "scope", "lam", "keep"),
    "spare": ("experiment", "scope", "against", "most_score_lost"),
    "units": ("experiment", "kind", "scope", "lam", "keep"),
    "dependencies": ("experiment", "relation", "direction"),
    "roles": ("experiment", "kind", "scope", "lam", "keep"),
    "dynamics": ("experiment", "update", "finished", "role", "name"),
    "alignment": ("experiment", "kind", "scope", "lam", "keep", "layer"),
    "speed": ("experiment", "device", "kind", "scope", "lam", "keep", "batch_sentences"),
    "michel_table2": ("experiment", "attention", "layer"),
    "michel_masking_curve": ("experiment", "order", "attention", "masked"),
    "michel_checkpoints": ("experiment", "update", "finished", "masked"),
    "correlations": ("experiment", "attention", "measure_a", "measure_b"),
    "selection": ("experiment", "target", "treatment", "updates"),
}
"""Columns that identify rows which differ only by their seed. Never single heads: head 3 of one seed is not head 3 of
another. Both tables of claims handle their seeds themselves, because a mean has a verdict of its own."""

DECIMALS = {"score": 2, "bleu": 2, "percent": 1, "points": 1, "per_sentence": 1, "share": 3, "loss": 4, "rho": 3}
DECIMALS |= {"p_value": 4, "lrp": 4, "confidence": 3, "accuracy": 3, "gain": 3, "survival": 3, "importance": 3}
DECIMALS |= {"aer": 3, "precision": 3, "recall": 3}
"""Decimals by a word in the column's name; other numbers are written as integers if whole, else with four digits."""


def gathered(name: str, runs: Sequence[Path], compared_with: Mapping[str, str] | None = None) -> pd.DataFrame:
    """The table with a name in TABLES, from the folders of runs; compared_with: as in `frames_of`."""
    return tabulated(name, load_runs(NEEDS[name], runs, compared_with))


def tabulated(name: str, frames: Frames) -> pd.DataFrame:
    """The table with a name in TABLES, from the frames that it needs."""
    table = TABLES[name](frames, *(load_reference(reference) for reference in NEEDS[name].reference))
    return with_spread(table, KEYS[name]) if name in KEYS else table


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

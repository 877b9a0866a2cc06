"""Parser accuracy: attachment scores against gold trees, for every experiment measured on parsed trees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from heads.base.files import UserError, read_tsv

COLUMNS = ("experiment", "measure", "relation", "gold", "parsed", "correct")
PERCENT = ("precision", "recall", "f1")


def parser_table(experiments: Sequence[Path]) -> pd.DataFrame:
    """A row for tags (UPOS), heads (UAS), heads with relations (LAS) and each relation, of each experiment.

    experiments: folders `results/EXPERIMENT`. Raises UserError if one has no parser scores.
    """
    rows = []
    for experiment in experiments:
        path = experiment / "parser" / "scores.tsv"
        if not path.exists():
            raise UserError(f"{path} does not exist: run the stage parser, or leave this experiment out.")
        for row in read_tsv(path):
            percent = {f"{name}_percent": 100 * float(row[name]) for name in PERCENT if row[name]}
            rows.append({**row, **percent, "experiment": experiment.name})
    table = pd.DataFrame(rows, columns=[*COLUMNS, *(f"{name}_percent" for name in PERCENT)])
    return table.astype(dict.fromkeys(("gold", "parsed", "correct"), int))

"""Write the interactive page that shows runs and tables."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd

from heads.base.files import write_text
from heads.cli._flags import OutFile
from heads.config.settings import gates_given
from heads.config.trainings import HardConcrete
from heads.explore.content import content
from heads.explore.needs import EXPLORED
from heads.explore.page import page
from heads.tables.reading import load_runs


def run(
    *,
    runs: Annotated[Sequence[Path], "folders results/EXPERIMENT/RUN"],
    tables: Annotated[Sequence[Path], "files table_NAME.tsv"] = (),
    gates: Annotated[
        dict[str, HardConcrete], {"type": gates_given}, "hard_concrete settings of each experiment's gates, JSON"
    ],
    figures: Annotated[Sequence[Path], "figures that claims link to"] = (),
    out: Annotated[OutFile, "the HTML file to write"],
) -> None:
    """Read everything and write the page."""
    texts = dict.fromkeys(("seed", "lam", "keep", "scope", "method", "rule"), str)
    frames = {
        path.stem.removeprefix("table_"): pd.read_csv(path, sep="\t", dtype=texts, keep_default_na=True)
        for path in tables
    }
    shown = [os.path.relpath(path, out.parent) for path in figures]
    write_text(out, page(content(load_runs(EXPLORED, runs), frames, gates, shown)))

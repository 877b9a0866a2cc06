"""Gather one table from many runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from heads.base.files import UserError
from heads.cli._flags import Compared, OutFile
from heads.tables.catalogue import TABLES
from heads.tables.corpus import corpus_table, parser_table
from heads.tables.gathering import table_of_runs, write_frame


def run(
    *,
    name: Annotated[str, {"choices": [*TABLES, "corpus", "parser"]}, "which table"],
    runs: Annotated[Sequence[Path], "folders results/EXPERIMENT/RUN of all runs to gather"] = (),
    experiments: Annotated[Sequence[Path], "for corpus and parser: folders results/EXPERIMENT"] = (),
    corpora: Annotated[Sequence[Path], "for corpus and parser: the corpus folder of each"] = (),
    compared_with: Compared = (),
    out: Annotated[OutFile, "the tab-separated file to write"],
) -> None:
    """Read the runs, make the table, and write it."""
    if name == "parser":
        table = parser_table(experiments, corpora)
    elif name == "corpus":
        table = corpus_table(experiments, corpora)
    elif not runs:
        raise UserError("--runs names no run: give folders such as results/demo/baseline/seed-1.")
    else:
        table = table_of_runs(name, runs, dict(compared_with))
    write_frame(out, table)

"""Write the interactive page that shows runs and tables."""

import argparse
import os
from pathlib import Path

import pandas as pd

from heads.base.files import write_text
from heads.cli._flags import add_output_argument
from heads.config.settings import gates_given
from heads.explore.content import content
from heads.explore.needs import EXPLORED
from heads.explore.page import page
from heads.tables.reading import load_runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--runs", required=True, nargs="+", type=Path, help="folders results/EXPERIMENT/RUN")
    parser.add_argument("--tables", nargs="*", type=Path, default=[], help="files table_NAME.tsv")
    parser.add_argument(
        "--gates", required=True, type=gates_given, help="hard_concrete settings of each experiment's gates, JSON"
    )
    parser.add_argument("--figures", nargs="*", type=Path, default=[], help="figures that claims link to")
    add_output_argument(parser, "--out", what="the HTML file to write")


def run(arguments: argparse.Namespace) -> None:
    """Read everything and write the page."""
    texts = dict.fromkeys(("seed", "lam", "keep", "scope", "method", "rule"), str)
    tables = {
        path.stem.removeprefix("table_"): pd.read_csv(path, sep="\t", dtype=texts, keep_default_na=True)
        for path in arguments.tables
    }
    figures = [os.path.relpath(path, arguments.out.parent) for path in arguments.figures]
    write_text(arguments.out, page(content(load_runs(EXPLORED, arguments.runs), tables, arguments.gates, figures)))

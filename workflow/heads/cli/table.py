"""Gather one table from many runs."""

import argparse
from pathlib import Path

from heads.base.files import UserError
from heads.cli._flags import add_compared_argument, add_output_argument
from heads.tables.catalogue import TABLES
from heads.tables.corpus import corpus_table, parser_table
from heads.tables.gathering import table_of_runs, write_frame


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--name", required=True, choices=[*TABLES, "corpus", "parser"], help="which table")
    parser.add_argument(
        "--runs",
        nargs="*",
        type=Path,
        default=[],
        help="folders results/EXPERIMENT/RUN of all runs to gather",
    )
    parser.add_argument(
        "--experiments", nargs="*", type=Path, default=[], help="for corpus and parser: folders results/EXPERIMENT"
    )
    parser.add_argument(
        "--corpora", nargs="*", type=Path, default=[], help="for corpus and parser: the corpus folder of each"
    )
    add_compared_argument(parser)
    add_output_argument(parser, "--out", what="the tab-separated file to write")


def run(arguments: argparse.Namespace) -> None:
    """Read the runs, make the table, and write it."""
    if arguments.name == "parser":
        table = parser_table(arguments.experiments, arguments.corpora)
    elif arguments.name == "corpus":
        table = corpus_table(arguments.experiments, arguments.corpora)
    elif not arguments.runs:
        raise UserError("--runs names no run: give folders such as results/demo/baseline/seed-1.")
    else:
        table = table_of_runs(arguments.name, arguments.runs, dict(arguments.compared_with))
    write_frame(arguments.out, table)

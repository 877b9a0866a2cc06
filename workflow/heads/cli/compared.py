"""Test whether each fine-tuned model with fewer heads scores differently from its unpruned model."""

import argparse
from pathlib import Path

from heads.analysis.choices import COMPARED_COLUMNS, compared_rows, metric_of
from heads.base.files import read_lines, write_tsv
from heads.base.runs import name_of
from heads.cli._flags import add_output_argument, add_path_argument, add_settings_argument, settings_of, tokeniser_named
from heads.config.analyses import SelectionSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser)
    add_path_argument(parser, "--baseline", "folder of the unpruned run")
    parser.add_argument("--runs", type=Path, nargs="*", default=[], help="folders of the runs to compare with it")
    add_path_argument(parser, "--references", "plain text of the target side")
    add_output_argument(parser, "--out", what="table to write")


def run(arguments: argparse.Namespace) -> None:
    """Read all translations, test them against the unpruned model's, and write the table."""
    settings = settings_of(arguments, SelectionSettings, "selection")
    runs = [(name_of(folder), folder) for folder in arguments.runs]
    references, tokeniser = read_lines(arguments.references), tokeniser_named(arguments)
    rows = compared_rows(arguments.baseline, runs, references, settings.resamples, tokeniser)
    write_tsv(arguments.out, rows, metric_of(arguments.baseline)[0].named(COMPARED_COLUMNS))

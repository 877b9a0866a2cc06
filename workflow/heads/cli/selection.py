"""Choose which heads of the unpruned model each method keeps, for every budget."""

import argparse

from heads.base.files import write_tsv
from heads.base.targets import Target
from heads.cli._flags import add_output_argument, add_path_argument, add_settings_argument, settings_of
from heads.config.analyses import SelectionSettings
from heads.pruning.selection import COLUMNS, read_measured, selection_rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser)
    add_path_argument(parser, "--baseline", "folder of the unpruned run and its measures")
    parser.add_argument("--targets", nargs="*", default=[], help="choices to make, such as example_layer-9 random2-12")
    add_output_argument(parser, "--out", what="table to write")


def run(arguments: argparse.Namespace) -> None:
    """Read the measures that the methods need, choose heads, and write the table."""
    settings = settings_of(arguments, SelectionSettings, "selection")
    targets = [Target.parse(text, by_gates=False) for text in arguments.targets]
    measured = read_measured(arguments.baseline, targets)
    write_tsv(arguments.out, selection_rows(targets, measured, settings.at_least), COLUMNS)

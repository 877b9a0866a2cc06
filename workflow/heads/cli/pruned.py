"""Remove the heads and hidden units whose gates closed, and check that the model computes the same function."""

import argparse

from heads.base.outputs import FOLDER
from heads.cli._flags import add_output_argument, add_path_argument
from heads.pruning.removal import remove_closed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_path_argument(parser, "--start-model", "folder of the model trained with gates")
    add_path_argument(parser, "--gates", "its table of gates")
    add_output_argument(parser, "--model", what="folder to write the smaller model into", kind=FOLDER)
    add_output_argument(parser, "--heads", what="table to write: all heads, open or closed")


def run(arguments: argparse.Namespace) -> None:
    """Write the smaller model and the table of all heads of the original."""
    remove_closed(arguments.start_model, arguments.gates, arguments.model, arguments.heads)

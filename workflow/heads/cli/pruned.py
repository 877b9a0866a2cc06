"""Remove the heads whose gates closed, and check that the model still computes the same function."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.pruning.removal import remove_closed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--start-model", type=Path, required=True, help="folder of the model trained with gates")
    parser.add_argument("--gates", type=Path, required=True, help="its table of gates")
    parser.add_argument("--model", type=Path, required=True, help="folder to write the smaller model into")
    parser.add_argument("--heads", type=Path, required=True, help="table to write: all heads, open or closed")


def run(arguments: argparse.Namespace) -> None:
    """Write the smaller model and the table of all heads of the original."""
    remove_closed(arguments.start_model, arguments.gates, arguments.model, arguments.heads)

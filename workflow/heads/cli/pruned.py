"""Remove the heads whose gates closed, and prove that nothing else changed."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.pruning.removal import remove_closed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads pruned`."""
    parser.add_argument("--start-model", type=Path, required=True, help="folder of the model trained with gates")
    parser.add_argument("--gates", type=Path, required=True, help="its table of gates")
    parser.add_argument("--model", type=Path, required=True, help="folder to write the smaller model into")
    parser.add_argument("--heads", type=Path, required=True, help="table of all heads, open or not, to write")


def run(arguments: argparse.Namespace) -> None:
    """Write the smaller model and the table of all heads of the original."""
    remove_closed(arguments.start_model, arguments.gates, arguments.model, arguments.heads)

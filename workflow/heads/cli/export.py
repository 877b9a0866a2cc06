"""Export a trained model to a folder that needs nothing else of the experiment to translate."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from heads.translation.export import export


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads export`."""
    parser.add_argument("--model", type=Path, required=True, help="folder of a run in results/EXPERIMENT")
    parser.add_argument("--out", type=Path, required=True, help="folder to make")


def run(arguments: argparse.Namespace) -> None:
    """Write the folder and say how to use it."""
    export(arguments.model, arguments.out)
    print(f"python -m heads translate --model {arguments.out} < source.txt", file=sys.stderr)

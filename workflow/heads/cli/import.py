"""Make a Marian model of transformers, such as an OPUS-MT model, into a folder that translates and can be pruned."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from heads.translation.from_hub import folder_of
from heads.translation.importing import import_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads import`."""
    parser.add_argument(
        "--pretrained", type=Path, required=True, help="folder as save_pretrained writes it, or a name on the hub"
    )
    parser.add_argument("--output", type=Path, required=True, help="folder to make")
    parser.add_argument("--prefix", default="", help='what each source sentence begins with, such as ">>ru<<"')


def run(arguments: argparse.Namespace) -> None:
    """Write the folder and say how to use it."""
    with folder_of(arguments.pretrained) as folder:
        import_model(folder, arguments.output, arguments.prefix)
    print(f"python -m heads translate --model {arguments.output} < source.txt", file=sys.stderr)

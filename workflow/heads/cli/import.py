"""Make a model of others, such as Firefox's, OPUS-MT's or a BERT, into a folder that can be pruned.

heads import firefox/en-pt -o my-model
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from heads.base.names import TRANSLATION
from heads.cli._flags import add_language_arguments, languages_of
from heads.translation.opening import fetched, import_any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `heads import`."""
    parser.add_argument(
        "model",
        help="a folder (Marian, save_pretrained), a name on the hub, or a pair of Firefox's such as firefox/en-de",
    )
    parser.add_argument(
        "-o", "--output", type=Path, help="folder to make; without it a model with a name is fetched alone"
    )
    add_language_arguments(parser)
    parser.add_argument(
        "--labels", nargs="+", default=(), help="of a BERT, in the order of its classifier, where it does not name them"
    )


def run(arguments: argparse.Namespace) -> None:
    """Write the folder and say how to use it, or fetch what it would be made of."""
    if arguments.output is None:
        print(fetched(arguments.model))
        return
    options = (arguments.prefix, arguments.labels, languages_of(arguments))
    task = import_any(arguments.model, arguments.output, *options)
    if task == TRANSLATION:
        print(f"heads translate {arguments.output} < source.txt", file=sys.stderr)

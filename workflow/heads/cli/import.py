"""Convert an external model, such as Firefox's, OPUS-MT's or a BERT, to a folder that can be pruned.

heads import firefox/en-pt -o my-model
"""

import argparse
import sys

from heads.base.outputs import NEW_FOLDER
from heads.cli._flags import add_labels_argument, add_language_arguments, add_output_argument, languages_of
from heads.interop.opening import fetched, import_any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "model",
        help="a folder (Marian, save_pretrained), a name on the hub, or a Firefox translator such as firefox/en-de",
    )
    what = "folder to write; without it, the model is only fetched"
    add_output_argument(parser, "-o", "--output", what=what, kind=NEW_FOLDER, required=False)
    add_language_arguments(parser)
    add_labels_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the folder and say how to use it, or only fetch the model."""
    if arguments.output is None:
        print(fetched(arguments.model))
        return
    options = (arguments.prefix, arguments.labels, languages_of(arguments))
    imported = import_any(arguments.model, arguments.output, *options)
    if not imported.shape.encoder_only:
        print(f"heads translate {arguments.output} < source.txt", file=sys.stderr)

"""Make a model of others, such as Firefox's, OPUS-MT's or a BERT, into a folder that can be pruned."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from heads.base.files import UserError
from heads.base.marian import CONFIG
from heads.translation.classifiers import import_classifier
from heads.translation.from_hub import folder_of
from heads.translation.from_mozilla import place_with_network
from heads.translation.marian_folder import read_object
from heads.translation.readers import import_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads import`."""
    parser.add_argument(
        "--pretrained",
        type=Path,
        required=True,
        help="a folder (Marian, save_pretrained), a name on the hub, or a pair of Firefox's such as firefox/en-de",
    )
    parser.add_argument("--output", type=Path, required=True, help="folder to make")
    parser.add_argument("--prefix", default="", help='what each source sentence begins with, such as ">>ru<<"')
    parser.add_argument(
        "--labels", nargs="+", default=(), help="of a BERT, in the order of its classifier, where it does not name them"
    )


def run(arguments: argparse.Namespace) -> None:
    """Write the folder and say how to use it."""
    with folder_of(place_with_network(arguments.pretrained.as_posix())) as folder:
        if (folder / CONFIG).is_file() and read_object(folder / CONFIG).get("model_type") == "bert":
            if arguments.prefix:
                raise UserError("--prefix is of models that translate: take it away.")
            if anew := import_classifier(folder, arguments.output, arguments.labels):
                print(anew, file=sys.stderr)
            return
        if arguments.labels:
            raise UserError("--labels are of a BERT: take them away.")
        import_model(str(folder), arguments.output, arguments.prefix)
    print(f"python -m heads translate --model {arguments.output} < source.txt", file=sys.stderr)

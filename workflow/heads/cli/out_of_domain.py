"""Write the out-of-domain test set of a corpus as plain text, one sentence per line."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.cli._flags import add_settings_argument
from heads.corpus.build import build_out_of_domain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser, "one entry of corpora")
    parser.add_argument("--downloads", type=Path, required=True, help="folder of the downloaded files")
    parser.add_argument("--out-folder", type=Path, required=True, help="folder for the two texts")


def run(arguments: argparse.Namespace) -> None:
    """Build the test set."""
    build_out_of_domain(arguments.settings, arguments.out_folder, arguments.downloads)

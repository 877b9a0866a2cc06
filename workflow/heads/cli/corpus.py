"""`corpus`: one entry of `corpora:` becomes plain text, a sentence a line, and a table of the filters."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.cli._flags import add_settings_argument, add_workers_argument
from heads.corpus.build import build


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser, "one entry of corpora")
    parser.add_argument("--downloads", type=Path, required=True, help="folder in which the fetched files lie")
    parser.add_argument("--out-folder", type=Path, required=True, help="folder for the texts and filters.tsv")
    add_workers_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Build the corpus."""
    build(arguments.settings, arguments.out_folder, arguments.downloads, arguments.threads)

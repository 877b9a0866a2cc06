"""`corpus`: one entry of `corpora:` becomes plain text, a sentence a line, and a table of the filters."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.base.files import read_yaml
from heads.cli._flags import add_workers_argument
from heads.corpus.build import build


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--settings", type=Path, required=True, help="YAML file with the one corpora entry")
    parser.add_argument("--downloads", type=Path, required=True, help="folder in which the fetched files lie")
    parser.add_argument("--out-folder", type=Path, required=True, help="folder for the texts and filters.tsv")
    add_workers_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Build the corpus."""
    build(read_yaml(arguments.settings), arguments.out_folder, arguments.downloads, arguments.threads)

"""Write one entry of `corpora:` as plain text, one sentence per line, with a table of its filters."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.cli._flags import add_settings_argument, add_workers_argument
from heads.corpus.build import build


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser, "one entry of corpora")
    parser.add_argument("--downloads", type=Path, required=True, help="folder of the downloaded files")
    parser.add_argument("--out-folder", type=Path, required=True, help="folder for the texts and filters.tsv")
    add_workers_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Build the corpus."""
    build(arguments.settings, arguments.out_folder, arguments.downloads, arguments.threads)

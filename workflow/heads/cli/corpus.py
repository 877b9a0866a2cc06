"""Write one entry of `corpora:` as plain text, one sentence per line, with a table of its filters."""

import argparse

from heads.base.outputs import FOLDER
from heads.cli._flags import add_output_argument, add_path_argument, add_settings_argument, add_workers_argument
from heads.corpus.build import build


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser, "one entry of corpora")
    add_path_argument(parser, "--downloads", "folder of the downloaded files")
    add_output_argument(parser, "--out-folder", what="folder for the texts and filters.tsv", kind=FOLDER)
    add_workers_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Build the corpus."""
    build(arguments.settings, arguments.out_folder, arguments.downloads, arguments.threads)

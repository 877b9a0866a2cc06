"""Write the out-of-domain test set of a corpus as plain text, one sentence per line."""

import argparse

from heads.base.outputs import FOLDER
from heads.cli._flags import add_output_argument, add_path_argument, add_settings_argument
from heads.corpus.build import build_out_of_domain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser, "one entry of corpora")
    add_path_argument(parser, "--downloads", "folder of the downloaded files")
    add_output_argument(parser, "--out-folder", what="folder for the two texts", kind=FOLDER)


def run(arguments: argparse.Namespace) -> None:
    """Build the test set."""
    build_out_of_domain(arguments.settings, arguments.out_folder, arguments.downloads)

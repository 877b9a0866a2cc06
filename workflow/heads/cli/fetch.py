"""Download one file, resume a broken download, and check its SHA-256."""

import argparse

from heads.base.fetch import fetch
from heads.cli._flags import add_output_argument


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--url", required=True, help="http(s) address of the file")
    add_output_argument(parser, "--out", what="file to write")
    parser.add_argument("--sha256", nargs="?", help="expected checksum; none: that of the first download, recorded")


def run(arguments: argparse.Namespace) -> None:
    """Download the file."""
    fetch(arguments.url, arguments.out, sha256=arguments.sha256)

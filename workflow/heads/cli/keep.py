"""Keep an experiment's results: its rows of every table, a few figures, and how all of it was made."""

import argparse
from pathlib import Path

from heads.base.keeping import keep
from heads.base.outputs import FOLDER
from heads.cli._flags import add_output_argument


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "--experiment", required=True, help="a finished one; call this in the folder where Snakemake ran"
    )
    what = "the folder to keep it in"
    add_output_argument(parser, "--to", what=what, kind=FOLDER, default=Path("docs/measured"), required=False)


def run(arguments: argparse.Namespace) -> None:
    """Write the folder of the experiment and print its size."""
    folder = keep(arguments.experiment, arguments.to)
    for place in (folder, arguments.to):
        files = [path for path in place.rglob("*") if path.is_file()]
        print(f"{place}: {len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.2f} MB")

"""Keep an experiment's results: its rows of every table, a few figures, and how all of it was made."""

import argparse
from pathlib import Path

from heads.base.keeping import keep


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "--experiment", required=True, help="a finished one; call this in the folder where Snakemake ran"
    )
    parser.add_argument("--to", type=Path, default=Path("docs/measured"), help="the folder to keep it in")


def run(arguments: argparse.Namespace) -> None:
    """Write the folder of the experiment and print its size."""
    folder = keep(arguments.experiment, arguments.to)
    for place in (folder, arguments.to):
        files = [path for path in place.rglob("*") if path.is_file()]
        print(f"{place}: {len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.2f} MB")

"""Show what a result was made from: code, versions, device, seed, settings, and all files and jobs behind it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from heads.base.files import UserError
from heads.base.lineage import jobs, story


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads why`."""
    parser.add_argument("file", help="a file below results/; the command is given in the folder that Snakemake ran in")


def run(arguments: argparse.Namespace) -> None:
    """Print the story of one file."""
    if not arguments.file or not Path(arguments.file).exists():
        raise UserError(f"{arguments.file!r} does not exist: give a file below results/.")
    made = jobs()
    given = Path(os.path.relpath(arguments.file))
    # What lies in a folder that was made as a whole was made with it.
    path = next((str(place) for place in (given, *given.parents) if str(place) in made), None)
    if path is None:
        raise UserError(f"{given} was made by no job that Snakemake remembers here: give one of its results.")
    print("\n".join(story(path, made)))

"""Show how a result was made: code, versions, device, seed, settings, and all files and jobs behind it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from heads.base.files import UserError
from heads.base.lineage import jobs, story


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("file", help="a file below results/; call this in the folder where Snakemake ran")


def run(arguments: argparse.Namespace) -> None:
    """Print how one file was made."""
    if not arguments.file or not Path(arguments.file).exists():
        raise UserError(f"{arguments.file!r} does not exist: give a file below results/.")
    made = jobs()
    given = Path(os.path.relpath(arguments.file))
    # A file in a folder that one job made as a whole has no job of its own.
    path = next((str(place) for place in (given, *given.parents) if str(place) in made), None)
    if path is None:
        raise UserError(f"Snakemake has no record here of a job that made {given}: give one of its results.")
    print("\n".join(story(path, made)))

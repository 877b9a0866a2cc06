"""Which heads each method keeps of the unpruned model, for every budget."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from heads.base.criteria import files_of
from heads.base.files import UserError, read_tsv, read_yaml, write_tsv
from heads.base.targets import Target
from heads.config.analyses import SelectionSettings
from heads.config.settings import section
from heads.model.shape import shape_of
from heads.pruning.criteria import COLUMNS, Measured, Rows, selection_rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads selection`."""
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--baseline", type=Path, required=True, help="folder of the unpruned run and its measures")
    parser.add_argument("--targets", nargs="*", default=[], help="choices to make, such as example_layer-9 random2-12")
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def run(arguments: argparse.Namespace) -> None:
    """Read the measures that the methods need, choose, write the table."""
    settings = section(SelectionSettings, read_yaml(arguments.settings)["selection"])
    targets = [Target.parse(text, by_gates=False) for text in arguments.targets]
    files = files_of(target.method for target in targets)
    tables = {name: measure(arguments.baseline / name) for name in files if name.endswith(".tsv")}
    measured = Measured(shape_of(arguments.baseline).heads(), tables)
    write_tsv(arguments.out, selection_rows(targets, measured, settings.at_least), COLUMNS)


def measure(path: Path) -> Rows:
    """The rows of a measure of the unpruned model."""
    try:
        return read_tsv(path)
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"{path} is missing or damaged ({error}): delete it and run its stage again.") from error

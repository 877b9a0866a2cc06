"""Which heads each method keeps of the unpruned model, for every budget."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.choices import COLUMNS, Measured, heads_of, selection_rows
from heads.files import read_json, read_tsv, read_yaml, write_tsv
from heads.methods import files_of
from heads.settings import SelectionSettings, section


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads selection`."""
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--baseline", type=Path, required=True, help="folder of the unpruned run and its measures")
    parser.add_argument("--targets", nargs="*", default=[], help="choices to make, such as example_layer-9 random2-12")
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def run(arguments: argparse.Namespace) -> None:
    """Read the measures that the methods need, choose, write the table."""
    settings = section(SelectionSettings, read_yaml(arguments.settings)["selection"])
    shape = read_json(arguments.baseline / "model.json")["shape"]
    tables = {
        name: read_tsv(arguments.baseline / name) for name in files_of(arguments.targets) if name.endswith(".tsv")
    }
    measured = Measured(heads_of(shape["live_heads"]), 4 * shape["width"] * shape["head_width"], tables)
    write_tsv(arguments.out, selection_rows(arguments.targets, measured, settings.at_least), COLUMNS)

"""Time pruned models against the unpruned one, all in this one process, round by round."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.bpe import Tokens
from heads.devices import add_device_arguments, pick
from heads.files import UserError, read_yaml, write_tsv
from heads.settings import SpeedSettings, section
from heads.speed import COLUMNS, clock_of, compare, contestant
from heads.tables.needs import run_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads speed`."""
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--baseline", type=Path, required=True, help="folder of the unpruned run")
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="folders of the runs to compare with it")
    parser.add_argument("--source", type=Path, required=True, help="token file to translate")
    parser.add_argument("--out", type=Path, required=True, help="table to write")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Load all models, time them in turn, write the table."""
    device = pick(arguments)
    settings = section(SpeedSettings, read_yaml(arguments.settings)["speed"])
    folders = {name_of(folder): folder for folder in (arguments.baseline, *arguments.runs)}
    if len(folders) <= len(arguments.runs):
        raise UserError("--baseline and --runs name a run twice: name each once.")
    contestants = {name: contestant(folder, arguments.source, settings, device) for name, folder in folders.items()}
    rows = compare(contestants, Tokens(arguments.source), settings, device, clock_of(device))
    write_tsv(arguments.out, rows, COLUMNS)


def name_of(folder: Path) -> str:
    """The run of a folder, such as `pruned/all/lam-0.05/seed-1`."""
    try:
        return run_of(folder.resolve())[1].folder
    except ValueError as error:
        raise UserError(f"{error}: give folders such as results/demo/baseline/seed-1.") from error

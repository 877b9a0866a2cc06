"""Time pruned models against the unpruned one, in turns in one process, on the CPU and on a GPU."""

import argparse
from pathlib import Path

from heads.analysis.speed import COLUMNS, time_on
from heads.base.files import UserError, write_tsv
from heads.base.runs import name_of
from heads.cli._flags import add_output_argument, add_path_argument, add_settings_argument, settings_of
from heads.config.analyses import SpeedSettings
from heads.training.devices import label_of, pick_each


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser)
    add_path_argument(parser, "--baseline", "folder of the unpruned run")
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="folders of the runs to compare with it")
    add_path_argument(parser, "--source", "token file to translate")
    add_output_argument(parser, "--out", what="table to write")
    parser.add_argument(
        "--device",
        nargs="+",
        default=["auto"],
        help="auto (the CPU, and a free GPU if there is one), or devices such as cpu cuda:1",
    )
    parser.add_argument("--threads", type=int, default=1, help="CPU threads for torch")


def run(arguments: argparse.Namespace) -> str:
    """Load all models, time them in turn on each device, and write the table."""
    devices = pick_each(arguments.device, arguments.threads)
    settings = settings_of(arguments, SpeedSettings, "speed")
    folders = {name_of(folder): folder for folder in (arguments.baseline, *arguments.runs)}
    if len(folders) <= len(arguments.runs):
        raise UserError("--baseline and --runs name a run twice: name each once.")
    write_tsv(arguments.out, time_on(devices, folders, arguments.source, settings), COLUMNS)
    return label_of(*devices)

"""Time pruned models against the unpruned one, all in this one process, round by round, on the CPU and on a GPU."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from heads.analysis.speed import COLUMNS, time_on
from heads.base.files import UserError, read_yaml, write_tsv
from heads.base.runs import run_of
from heads.config.settings import SpeedSettings, section
from heads.training.devices import pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads speed`."""
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--baseline", type=Path, required=True, help="folder of the unpruned run")
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="folders of the runs to compare with it")
    parser.add_argument("--source", type=Path, required=True, help="token file to translate")
    parser.add_argument("--out", type=Path, required=True, help="table to write")
    parser.add_argument(
        "--device",
        nargs="+",
        default=["auto"],
        help="auto (the CPU, and a free GPU when there is one), or what to time on: cpu cuda, cuda:1",
    )
    parser.add_argument("--threads", type=int, default=1, help="CPU threads for torch")


def run(arguments: argparse.Namespace) -> None:
    """Load all models, time them in turn on each device, write the table."""
    devices = picked(arguments)
    settings = section(SpeedSettings, read_yaml(arguments.settings)["speed"])
    folders = {name_of(folder): folder for folder in (arguments.baseline, *arguments.runs)}
    if len(folders) <= len(arguments.runs):
        raise UserError("--baseline and --runs name a run twice: name each once.")
    write_tsv(arguments.out, time_on(devices, folders, arguments.source, settings), COLUMNS)


def picked(arguments: argparse.Namespace) -> list[torch.device]:
    """The devices asked for, in their order; what was picked is put into `arguments`, for the record.

    Raises UserError for a device that is named twice.
    """
    names = arguments.device
    if names == ["auto"]:
        names = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    if len(set(names)) < len(names):
        raise UserError(f"--device {' '.join(names)} names a device twice: name each once.")
    each = [argparse.Namespace(device=name, threads=arguments.threads) for name in names]
    devices = [pick(one) for one in each]
    arguments.device = ", ".join(one.device for one in each)
    return devices


def name_of(folder: Path) -> str:
    """The run of a folder, such as `pruned/all/lam-0.05/seed-1`."""
    try:
        return run_of(folder.resolve())[1].folder
    except ValueError as error:
        raise UserError(f"{error}: give folders such as results/demo/baseline/seed-1.") from error

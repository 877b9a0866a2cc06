"""Time what a head of each kind of attention costs the unpruned model."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.analysis.latency import COLUMNS, latency_rows
from heads.analysis.speed import clock_of
from heads.base.files import write_tsv
from heads.cli._flags import add_device_arguments, add_settings_argument
from heads.config.analyses import SpeedSettings
from heads.config.settings import section
from heads.model.folder import load_model
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads latency`."""
    add_settings_argument(parser)
    parser.add_argument("--model", type=Path, required=True, help="folder of the unpruned model")
    parser.add_argument("--source", type=Path, required=True, help="token file to translate")
    parser.add_argument("--out", type=Path, required=True, help="table to write")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Time, write the table."""
    device = pick(arguments.device, arguments.threads)
    settings = section(SpeedSettings, arguments.settings["speed"])
    model = load_model(arguments.model).to(device)
    write_tsv(arguments.out, latency_rows(model, Tokens(arguments.source), settings, device, clock_of(device)), COLUMNS)
    return label_of(device)

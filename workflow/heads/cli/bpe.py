"""Learn one side's BPE vocabulary from the training text."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.base.files import read_yaml
from heads.base.names import SIDES
from heads.config.settings import section
from heads.config.trainings import BpeSettings
from heads.text.vocabulary import train_bpe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads bpe`."""
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--side", choices=SIDES, required=True)
    parser.add_argument("--text", type=Path, required=True, help="training text of that side")
    parser.add_argument("--model", type=Path, required=True, help="SentencePiece model to write")


def run(arguments: argparse.Namespace) -> None:
    """Train and write the model."""
    settings = section(BpeSettings, read_yaml(arguments.settings)["bpe"])
    pieces = settings.source_pieces if arguments.side == "source" else settings.target_pieces
    train_bpe(arguments.text, arguments.model, settings, pieces)

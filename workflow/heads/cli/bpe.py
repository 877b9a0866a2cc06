"""Learn the BPE vocabulary of one side from its training text, or collect its labels."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.base.names import CLASSIFICATION, SIDES, TASK
from heads.cli._flags import add_settings_argument
from heads.config.settings import section
from heads.config.trainings import BpeSettings
from heads.text.labels import learn_labels
from heads.text.vocabulary import train_bpe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser)
    parser.add_argument("--side", choices=SIDES, required=True)
    parser.add_argument("--text", type=Path, required=True, help="training text of that side")
    parser.add_argument("--model", type=Path, required=True, help="SentencePiece model to write")


def run(arguments: argparse.Namespace) -> None:
    """Learn and write the vocabulary or the labels."""
    content = arguments.settings
    settings, labelled = section(BpeSettings, content["bpe"]), content.get(TASK) == CLASSIFICATION
    if labelled and arguments.side == "target":
        learn_labels(arguments.text, arguments.model)
        return
    subwords = settings.source_subwords if arguments.side == "source" else settings.target_subwords
    train_bpe(arguments.text, arguments.model, settings, subwords, framed=labelled)

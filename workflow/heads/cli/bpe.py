"""Learn the BPE vocabularies from the training text, or collect its labels."""

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
    parser.add_argument("--side", choices=SIDES, nargs="+", required=True, help="source, target or both")
    parser.add_argument("--text", type=Path, nargs="+", required=True, help="training text of each side")
    parser.add_argument("--model", type=Path, nargs="+", required=True, help="SentencePiece model of each, to write")


def run(arguments: argparse.Namespace) -> None:
    """Learn and write the vocabularies or the labels."""
    content = arguments.settings
    settings, labelled = section(BpeSettings, content["bpe"]), content.get(TASK) == CLASSIFICATION
    subwords = {"source": settings.source_subwords, "target": settings.target_subwords}
    for side, text, model in zip(arguments.side, arguments.text, arguments.model, strict=True):
        if labelled and side == "target":
            learn_labels(text, model)
        else:
            train_bpe(text, model, settings, subwords[side], framed=labelled)

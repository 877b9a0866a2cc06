"""Learn the BPE vocabulary of one side from its training text, or collect its labels."""

import argparse

from heads.base.names import CLASSIFICATION, SIDES, TASK
from heads.cli._flags import add_path_argument, add_settings_argument, settings_of
from heads.config.trainings import BpeSettings
from heads.text.labels import learn_labels
from heads.text.vocabulary import train_bpe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_settings_argument(parser)
    parser.add_argument("--side", choices=SIDES, required=True)
    add_path_argument(parser, "--text", "training text of that side")
    add_path_argument(parser, "--model", "SentencePiece model to write")


def run(arguments: argparse.Namespace) -> None:
    """Learn and write the vocabulary or the labels."""
    settings, labelled = settings_of(arguments, BpeSettings, "bpe"), arguments.settings.get(TASK) == CLASSIFICATION
    if labelled and arguments.side == "target":
        learn_labels(arguments.text, arguments.model)
        return
    subwords = settings.source_subwords if arguments.side == "source" else settings.target_subwords
    train_bpe(arguments.text, arguments.model, settings, subwords, framed=labelled)

"""Learn the BPE vocabularies from the training text, or collect its labels."""

import argparse

from heads.base.files import UserError
from heads.base.names import CLASSIFICATION, SIDES, TASK
from heads.cli._flags import add_output_argument, add_path_argument, add_settings_argument, settings_of
from heads.config.trainings import BpeSettings
from heads.text.labels import learn_labels
from heads.text.vocabulary import train_bpe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser)
    parser.add_argument("--side", choices=SIDES, nargs="+", required=True, help="source, target or both")
    add_path_argument(parser, "--text", "training text of each side", nargs="+")
    add_output_argument(parser, "--model", what="SentencePiece model of each, to write", nargs="+")


def run(arguments: argparse.Namespace) -> None:
    """Learn and write the vocabularies or the labels."""
    if not len(arguments.side) == len(arguments.text) == len(arguments.model):
        raise UserError("--side, --text and --model differ in number: give a text and a model for each side.")
    settings, labelled = settings_of(arguments, BpeSettings, "bpe"), arguments.settings.get(TASK) == CLASSIFICATION
    subwords = {"source": settings.source_subwords, "target": settings.target_subwords}
    for side, text, model in zip(arguments.side, arguments.text, arguments.model, strict=True):
        if labelled and side == "target":
            learn_labels(text, model)
        else:
            train_bpe(text, model, settings, subwords[side], framed=labelled)

"""Train a tagger and a dependency parser on a treebank with Stanza's own trainer."""

import argparse

from heads.base.outputs import FOLDER
from heads.cli._flags import (
    add_device_arguments,
    add_output_argument,
    add_path_argument,
    add_settings_argument,
    settings_of,
)
from heads.config.trainings import ParserSettings
from heads.syntax.conllu import read_conllu
from heads.syntax.parsing import train_models
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser)
    add_path_argument(parser, "--trees", "treebank to learn from, CoNLL-U")
    parser.add_argument("--language", required=True, help="language of the treebank, such as en")
    add_output_argument(parser, "--model", what="folder of models to write", kind=FOLDER)
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Train and write the folder."""
    settings = settings_of(arguments, ParserSettings, "parser")
    device = pick(arguments.device, arguments.threads)
    train_models(arguments.model, arguments.language, list(read_conllu(arguments.trees)), settings, device)
    return label_of(device)

"""Train a tagger and a dependency parser on a treebank with Stanza's own trainer."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.cli._flags import add_device_arguments, add_settings_argument
from heads.config.settings import section
from heads.config.trainings import ParserSettings
from heads.syntax.conllu import read_conllu
from heads.syntax.parsing import train_models
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser)
    parser.add_argument("--trees", type=Path, required=True, help="treebank to learn from, CoNLL-U")
    parser.add_argument("--language", required=True, help="language of the treebank, such as en")
    parser.add_argument("--model", type=Path, required=True, help="folder of models to write")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Train and write the folder."""
    settings = section(ParserSettings, arguments.settings["parser"])
    device = pick(arguments.device, arguments.threads)
    train_models(arguments.model, arguments.language, list(read_conllu(arguments.trees)), settings, device)
    return label_of(device)

"""Take the vocabularies of a model of transformers, with its pieces in our order; of a BERT, pieces and labels."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.base.files import read_yaml
from heads.base.names import CLASSIFICATION, TASK
from heads.config.settings import section
from heads.config.trainings import BaselineSettings
from heads.translation.bert_folder import read_bert
from heads.translation.classifiers import write_pieces_and_labels
from heads.translation.importing import write_vocabularies
from heads.translation.marian_folder import read_marian


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads imported_bpe`."""
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--out-folder", type=Path, required=True, help="folder to write both vocabularies into")


def run(arguments: argparse.Namespace) -> None:
    """Read the folder that the settings name, write the models and what came with them."""
    content = read_yaml(arguments.settings)
    settings = section(BaselineSettings, content["baseline"])
    folder = Path(settings.pretrained)
    if content.get(TASK) == CLASSIFICATION:
        write_pieces_and_labels(read_bert(folder), arguments.out_folder, settings.labels)
    else:
        write_vocabularies(read_marian(folder), arguments.out_folder, settings.prefix)

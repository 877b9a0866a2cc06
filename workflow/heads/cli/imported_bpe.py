"""Take the vocabularies of a Marian model of transformers, with its pieces in our order."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.base.files import read_yaml
from heads.config.settings import section
from heads.config.trainings import BaselineSettings
from heads.translation.importing import write_vocabularies
from heads.translation.marian_folder import read_marian


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads imported_bpe`."""
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--out-folder", type=Path, required=True, help="folder to write both SentencePiece models into")


def run(arguments: argparse.Namespace) -> None:
    """Read the folder that the settings name, write the models and what came with them."""
    settings = section(BaselineSettings, read_yaml(arguments.settings)["baseline"])
    write_vocabularies(read_marian(Path(settings.pretrained)), arguments.out_folder, settings.prefix)

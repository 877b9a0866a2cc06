"""Write the vocabularies of an external model with subwords in our order; for a BERT, subwords and labels."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.base.names import TASK, TRANSLATION
from heads.cli._flags import add_settings_argument
from heads.config.settings import section
from heads.config.trainings import BaselineSettings
from heads.formats.registry import format_of
from heads.translation.opening import READERS, Wishes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser)
    parser.add_argument("--out-folder", type=Path, required=True, help="folder to write both vocabularies into")


def run(arguments: argparse.Namespace) -> None:
    """Read the folder that the settings name; write its vocabularies and the files that came with them."""
    content = arguments.settings
    settings = section(BaselineSettings, content["baseline"])
    found, folder = format_of(settings.pretrained, content.get(TASK, TRANSLATION))
    languages = (settings.source_language, settings.target_language)
    wishes = Wishes(settings.prefix, settings.labels, languages=languages)
    READERS[found.name](folder, wishes).write_vocabularies(arguments.out_folder)

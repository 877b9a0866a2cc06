"""Write the vocabularies of an external model with subwords in our order; for a BERT, subwords and labels."""

import argparse

from heads.base.names import TASK, TRANSLATION
from heads.base.outputs import FOLDER
from heads.cli._flags import add_output_argument, add_settings_argument, settings_of
from heads.config.trainings import BaselineSettings
from heads.interop.families import family_of
from heads.interop.family import ImportOptions
from heads.interop.formats import format_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser)
    add_output_argument(parser, "--out-folder", what="folder to write both vocabularies into", kind=FOLDER)


def run(arguments: argparse.Namespace) -> None:
    """Read the folder that the settings name; write its vocabularies and the files that came with them."""
    settings = settings_of(arguments, BaselineSettings, "baseline")
    found, folder = format_of(settings.pretrained, arguments.settings.get(TASK, TRANSLATION))
    languages = (settings.source_language, settings.target_language)
    options = ImportOptions(settings.prefix, settings.labels, languages=languages)
    family_of(found).read(folder, options).vocabularies().write(arguments.out_folder)

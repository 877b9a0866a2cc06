"""Write the vocabularies of an external model with subwords in our order; for a BERT, subwords and labels."""

from typing import Annotated

from heads.base.names import TASK, TRANSLATION
from heads.cli._flags import OutFolder, Settings
from heads.config.settings import section
from heads.config.trainings import BaselineSettings
from heads.interop.families import family_of
from heads.interop.family import ImportOptions
from heads.interop.formats import format_of
from heads.interop.original import OriginalFiles


def run(settings: Settings, out_folder: Annotated[OutFolder, "folder to write both vocabularies into"]) -> None:
    """Read the folder that the settings name; write its vocabularies and the files that came with them."""
    how = section(BaselineSettings, settings["baseline"])
    found, folder = format_of(how.pretrained, settings.get(TASK, TRANSLATION))
    languages = (how.source_language, how.target_language)
    options = ImportOptions(how.prefix, how.labels, languages=languages)
    family_of(found).read(OriginalFiles(folder), options).vocabularies().write(out_folder)

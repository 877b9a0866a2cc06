"""Write the out-of-domain test set of a corpus as plain text, one sentence per line."""

from typing import Annotated

from heads.cli._flags import CorpusEntry, Downloads, OutFolder
from heads.corpus.build import build_out_of_domain


def run(
    settings: CorpusEntry, downloads: Downloads, out_folder: Annotated[OutFolder, "folder for the two texts"]
) -> None:
    """Build the test set."""
    build_out_of_domain(settings, out_folder, downloads)

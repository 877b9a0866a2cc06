"""Write one entry of `corpora:` as plain text, one sentence per line, with a table of its filters."""

from typing import Annotated

from heads.cli._flags import CorpusEntry, Downloads, OutFolder, Workers
from heads.corpus.build import build


def run(
    settings: CorpusEntry,
    downloads: Downloads,
    out_folder: Annotated[OutFolder, "folder for the texts and filters.tsv"],
    threads: Workers = 1,
) -> None:
    """Build the corpus."""
    build(settings, out_folder, downloads, threads)

"""Write the word alignment of a split: the grammar's own, or the one that the corpus names."""

from pathlib import Path
from typing import Annotated

from heads.base.names import SPLITS
from heads.cli._flags import CorpusEntry, Downloads, OutFile
from heads.config.corpus_entries import parse_corpus
from heads.corpus.annotations import alignment_of, write_alignment


def run(
    settings: CorpusEntry,
    split: Annotated[str, {"choices": SPLITS}, "split whose pairs are aligned"],
    downloads: Downloads,
    source: Annotated[Path, "plain text of the source side of the split"],
    target: Annotated[Path, "plain text of the target side of the split"],
    links: Annotated[OutFile, "file to write: links in Pharaoh format, one line per pair"],
    source_words: Annotated[OutFile, "file to write: the source text with spaces between its words"],
    target_words: Annotated[OutFile, "file to write: the target text with spaces between its words"],
) -> None:
    """Write links and words. Raises UserError if the corpus has no alignment of the split."""
    corpus = parse_corpus(settings)
    texts = (source, target)
    pairs = alignment_of(corpus, split, texts, downloads)
    write_alignment(pairs, links, (source_words, target_words))

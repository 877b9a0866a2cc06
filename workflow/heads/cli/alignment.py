"""Write the word alignment of a split: the grammar's own, or the one that the corpus names."""

import argparse

from heads.base.names import SIDES, SPLITS
from heads.cli._flags import add_output_argument, add_path_argument, add_settings_argument
from heads.config.corpus_entries import parse_corpus
from heads.corpus.annotations import alignment_of, write_alignment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser, "one entry of corpora")
    parser.add_argument("--split", choices=SPLITS, required=True, help="split whose pairs are aligned")
    add_path_argument(parser, "--downloads", "folder of the downloaded files")
    for side in SIDES:
        add_path_argument(parser, f"--{side}", f"plain text of the {side} side of the split")
    add_output_argument(parser, "--links", what="file to write: links in Pharaoh format, one line per pair")
    for side in SIDES:
        add_output_argument(parser, f"--{side}-words", what="file to write: the text with spaces between its words")


def run(arguments: argparse.Namespace) -> None:
    """Write links and words. Raises UserError if the corpus has no alignment of the split."""
    corpus = parse_corpus(arguments.settings)
    texts = (arguments.source, arguments.target)
    pairs = alignment_of(corpus, arguments.split, texts, arguments.downloads)
    write_alignment(pairs, arguments.links, (arguments.source_words, arguments.target_words))

"""Write the gold dependency trees of a split's source sentences, or a treebank instead, as CoNLL-U."""

import argparse

from heads.cli._flags import add_output_argument, add_path_argument, add_settings_argument
from heads.config.corpora import GrammarCorpus, GrammarPairsCorpus
from heads.config.corpus_entries import parse_corpus
from heads.corpus.annotations import grammar_trees, write_treebank
from heads.corpus.splits import text_name
from heads.syntax.conllu import write_conllu


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_settings_argument(parser, "one entry of corpora")
    parser.add_argument("--split", choices=("train", "dev", "test"), required=True, help="split whose trees to write")
    add_path_argument(parser, "--downloads", "folder of the downloaded files")
    add_output_argument(parser, "--out", what="CoNLL-U file to write, in the folder of the built corpus")


def run(arguments: argparse.Namespace) -> None:
    """Write the trees. Raises UserError if the corpus has none for the split."""
    corpus = parse_corpus(arguments.settings)
    text = arguments.out.parent / text_name(arguments.split, "source")
    if isinstance(corpus, GrammarCorpus | GrammarPairsCorpus):
        write_conllu(arguments.out, grammar_trees(corpus, arguments.split, text))
    else:
        write_treebank(corpus, arguments.split, arguments.downloads, arguments.out)

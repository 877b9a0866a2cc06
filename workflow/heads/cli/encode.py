"""Encode texts into subword ids."""

import argparse

from heads.base.files import UserError
from heads.cli._flags import add_output_argument, add_path_argument, add_workers_argument
from heads.text.encoding import encode_file, vocabulary_or_labels


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_path_argument(parser, "--text", "one sentence, example or label per line", nargs="+")
    add_path_argument(parser, "--bpe", "SentencePiece model or labels of each text", nargs="+")
    add_output_argument(parser, "--tokens", what="token file of each, to write", nargs="+")
    add_workers_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Encode and write."""
    if not len(arguments.text) == len(arguments.bpe) == len(arguments.tokens):
        raise UserError("--text, --bpe and --tokens differ in number: give a model and a token file for each text.")
    for text, bpe, tokens in zip(arguments.text, arguments.bpe, arguments.tokens, strict=True):
        encode_file(text, vocabulary_or_labels(bpe), tokens, arguments.threads)

"""Encode one side of one split into subword ids."""

import argparse

from heads.cli._flags import add_path_argument, add_workers_argument
from heads.text.encoding import encode_file, opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path_argument(parser, "--text", "one sentence, example or label per line")
    add_path_argument(parser, "--bpe", "SentencePiece model, or labels")
    add_path_argument(parser, "--tokens", "token file to write")
    add_workers_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Encode and write."""
    encode_file(arguments.text, opened(arguments.bpe), arguments.tokens, arguments.threads)

"""Encode texts into subword ids."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.cli._flags import add_workers_argument
from heads.text.encoding import encode_file, opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--text", type=Path, nargs="+", required=True, help="one sentence, example or label per line")
    parser.add_argument("--bpe", type=Path, nargs="+", required=True, help="SentencePiece model or labels of each text")
    parser.add_argument("--tokens", type=Path, nargs="+", required=True, help="token file of each, to write")
    add_workers_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Encode and write."""
    for text, bpe, tokens in zip(arguments.text, arguments.bpe, arguments.tokens, strict=True):
        encode_file(text, opened(bpe), tokens, arguments.threads)

"""Encode one side of one split into subword ids."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.cli._flags import add_workers_argument
from heads.text.encoding import encode_file, opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--text", type=Path, required=True, help="one sentence, example or label per line")
    parser.add_argument("--bpe", type=Path, required=True, help="SentencePiece model, or labels")
    parser.add_argument("--tokens", type=Path, required=True, help="token file to write")
    add_workers_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Encode and write."""
    encode_file(arguments.text, opened(arguments.bpe), arguments.tokens, arguments.threads)

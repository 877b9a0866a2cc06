"""Encode one side of one split into subword ids."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.cli._flags import add_workers_argument
from heads.text.encoding import encode_file, opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads encode`."""
    parser.add_argument("--text", type=Path, required=True, help="a sentence a line, an example or a label")
    parser.add_argument("--bpe", type=Path, required=True, help="SentencePiece model, or labels")
    parser.add_argument("--tokens", type=Path, required=True, help="token file to write")
    add_workers_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Encode and write."""
    encode_file(arguments.text, opened(arguments.bpe), arguments.tokens, arguments.threads)

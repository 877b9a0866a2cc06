"""Attachment scores of a parse against the gold trees of the same words."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.base.files import write_tsv
from heads.syntax.attachment_scores import COLUMNS, attachment_rows
from heads.syntax.conllu import read_conllu


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--gold", type=Path, required=True, help="gold trees, CoNLL-U")
    parser.add_argument("--parsed", type=Path, required=True, help="the same words parsed, CoNLL-U")
    parser.add_argument("--scores", type=Path, required=True, help="table to write")


def run(arguments: argparse.Namespace) -> None:
    """Compare and write the table."""
    rows = attachment_rows(read_conllu(arguments.gold), read_conllu(arguments.parsed))
    write_tsv(arguments.scores, rows, COLUMNS)

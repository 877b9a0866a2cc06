"""Attachment scores of a parse against the gold trees of the same words."""

import argparse

from heads.base.files import write_tsv
from heads.cli._flags import add_path_argument
from heads.syntax.attachment_scores import COLUMNS, attachment_rows
from heads.syntax.conllu import read_conllu


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path_argument(parser, "--gold", "gold trees, CoNLL-U")
    add_path_argument(parser, "--parsed", "the same words parsed, CoNLL-U")
    add_path_argument(parser, "--scores", "table to write")


def run(arguments: argparse.Namespace) -> None:
    """Compare and write the table."""
    rows = attachment_rows(read_conllu(arguments.gold), read_conllu(arguments.parsed))
    write_tsv(arguments.scores, rows, COLUMNS)

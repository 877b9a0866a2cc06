"""`parser`: parse English sentences with a folder of Stanza models and score the parse where there are gold trees."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.base.files import write_tsv
from heads.cli._flags import add_device_arguments
from heads.syntax.attachment_scores import COLUMNS, attachment_rows
from heads.syntax.conllu import read_conllu, write_conllu
from heads.syntax.parsing import open_models, parse
from heads.syntax.tokenising import read_text
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads parser`."""
    parser.add_argument("--model", type=Path, required=True, help="folder of Stanza models")
    parser.add_argument("--language", required=True, help="language of the models, such as en")
    words = parser.add_mutually_exclusive_group(required=True)
    words.add_argument(
        "--trees", type=Path, help="gold trees, CoNLL-U: their words are parsed, and the parse is scored"
    )
    words.add_argument("--text", type=Path, help="plain text, a sentence a line: cut into words, parsed, not scored")
    parser.add_argument("--parsed", type=Path, required=True, help="CoNLL-U file to write")
    parser.add_argument("--scores", type=Path, required=True, help="table to write; without gold trees only its header")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Parse, write the trees and the scores."""
    device = pick(arguments.device, arguments.threads)
    models = open_models(arguments.model, arguments.language, device)
    sentences = list(read_conllu(arguments.trees)) if arguments.trees else read_text(arguments.text)
    parsed = list(parse(models, sentences))
    write_conllu(arguments.parsed, parsed)
    write_tsv(arguments.scores, attachment_rows(sentences, parsed) if arguments.trees else [], COLUMNS)
    return label_of(device)

"""`roles`: which encoder heads are positional, syntactic or look at rare words, on parsed sentences."""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path

from heads.attention_rows import attend, live_heads
from heads.bpe import Tokens, Vocabulary
from heads.checkpoints import load_model
from heads.corpus.conllu import read_conllu
from heads.devices import add_device_arguments, pick
from heads.files import read_yaml, write_tsv
from heads.roles import COLUMNS, LONGEST, SHORTEST, frequency_ranks, roles
from heads.settings import RolesSettings, section
from heads.words import words_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads roles`."""
    parser.add_argument("--model", type=Path, required=True, help="weights")
    parser.add_argument("--shape", type=Path, required=True, help="model.json")
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--source-bpe", type=Path, required=True, help="source SentencePiece model")
    parser.add_argument("--trees", type=Path, required=True, help="parsed source sentences, CoNLL-U")
    parser.add_argument("--train-source", type=Path, required=True, help="token file to count pieces in")
    parser.add_argument("--out", type=Path, required=True, help="table to write")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Measure and write the table; say on standard error how many sentences were left out."""
    settings = section(RolesSettings, read_yaml(arguments.settings)["roles"])
    model = load_model(arguments.model, arguments.shape).to(pick(arguments))
    vocabulary = Vocabulary(arguments.source_bpe)
    sentences = list(words_of(islice(read_conllu(arguments.trees), settings.sentences or None), vocabulary))
    kept = [words for words in sentences if SHORTEST <= len(words) <= LONGEST]
    if len(kept) < len(sentences):
        left_out = len(sentences) - len(kept)
        print(f"{left_out} trees left out: not {SHORTEST} to {LONGEST} words", file=sys.stderr)
    ranks = frequency_ranks(Tokens(arguments.train_source).ids, len(vocabulary))
    attended = attend(model, kept, settings.batch_tokens)
    write_tsv(arguments.out, roles(attended, live_heads(model.shape, "enc_self"), ranks, settings), COLUMNS)

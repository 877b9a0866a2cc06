"""How well each cross-attention head agrees with a word alignment of dev pairs."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.analysis.alignment_heads import COLUMNS, alignment_heads, golds_of
from heads.analysis.attention_weights import attend_to_source
from heads.base.files import write_tsv
from heads.cli._flags import add_device_arguments, add_settings_argument
from heads.config.analyses import AlignmentHeadsSettings
from heads.config.settings import section
from heads.model.folder import load_folder
from heads.syntax.pharaoh import aligned_pairs, lines_of
from heads.text.encoding import vocabulary_of
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--model", type=Path, required=True, help="folder of a trained model")
    add_settings_argument(parser)
    for side in ("source", "target"):
        parser.add_argument(f"--{side}-bpe", type=Path, required=True, help=f"{side} SentencePiece model")
        parser.add_argument(f"--{side}", type=Path, required=True, help=f"plain text of the {side} sentences")
        parser.add_argument(
            f"--{side}-words", type=Path, required=True, help="the same with spaces between the words that links count"
        )
    parser.add_argument("--links", type=Path, required=True, help="word alignment in Pharaoh format, one line per pair")
    parser.add_argument("--out", type=Path, required=True, help="table to write")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Measure and write the table; report on standard error what is left out."""
    settings = section(AlignmentHeadsSettings, arguments.settings["alignment_heads"])
    texts = [lines_of(path) for path in (arguments.source, arguments.target)]
    words = [lines_of(path) for path in (arguments.source_words, arguments.target_words)]
    pairs = aligned_pairs(lines_of(arguments.links), texts, words)
    vocabularies = [vocabulary_of(path) for path in (arguments.source_bpe, arguments.target_bpe)]
    golds = golds_of(pairs, vocabularies, settings, str(arguments.links))
    device = pick(arguments.device, arguments.threads)
    model = load_folder(arguments.model).to(device)
    heads = [(layer, head) for _, layer, head in model.shape.heads(("dec_enc",))]
    attended = attend_to_source(model, [(gold.source, gold.target) for gold in golds], settings.batch_tokens)
    write_tsv(arguments.out, alignment_heads(attended, golds, heads, settings), COLUMNS)
    return label_of(device)

"""How well each cross-attention head agrees with a word alignment of dev pairs."""

import argparse

from heads.analysis.alignment_heads import COLUMNS, alignment_heads, golds_of
from heads.analysis.attention_weights import attend_to_source
from heads.base.files import write_tsv
from heads.cli._flags import add_analysis_arguments, add_output_argument, add_path_argument, settings_of
from heads.config.analyses import AlignmentHeadsSettings
from heads.model.folder import load_folder
from heads.syntax.pharaoh import aligned_pairs, lines_of
from heads.text.encoding import vocabulary_of
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_analysis_arguments(parser)
    for side in ("source", "target"):
        add_path_argument(parser, f"--{side}-bpe", f"{side} SentencePiece model")
        add_path_argument(parser, f"--{side}", f"plain text of the {side} sentences")
        add_path_argument(parser, f"--{side}-words", "the same with spaces between the words that links count")
    add_path_argument(parser, "--links", "word alignment in Pharaoh format, one line per pair")
    add_output_argument(parser, "--out", what="table to write")


def run(arguments: argparse.Namespace) -> str:
    """Measure and write the table; report on standard error what is left out."""
    settings = settings_of(arguments, AlignmentHeadsSettings, "alignment_heads")
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

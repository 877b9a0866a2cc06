"""Which target token's source heads look at: that of the one being written, the last or the next."""

import argparse

from heads.analysis.alignment_heads import golds_of, unlinked
from heads.analysis.cross_attention_roles import COLUMNS, roles_of_cross_attention
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
        add_path_argument(parser, f"--{side}-words", "if there are links: the same with spaces between words", "?")
    add_path_argument(parser, "--links", "word alignment in Pharaoh format; none: by the model's own best aligner", "?")
    add_output_argument(parser, "--out", what="table to write")


def run(arguments: argparse.Namespace) -> str:
    """Measure and write the table."""
    settings = settings_of(arguments, AlignmentHeadsSettings, "alignment_heads")
    vocabularies = [vocabulary_of(path) for path in (arguments.source_bpe, arguments.target_bpe)]
    texts = [lines_of(path) for path in (arguments.source, arguments.target)]
    given = arguments.links is not None
    if given:
        words = [lines_of(path) for path in (arguments.source_words, arguments.target_words)]
        linked = aligned_pairs(lines_of(arguments.links), texts, words)
        golds = golds_of(linked, vocabularies, settings, str(arguments.links))
    else:
        golds = unlinked(texts, vocabularies, settings)
    device = pick(arguments.device, arguments.threads)
    model = load_folder(arguments.model).to(device)
    rows = roles_of_cross_attention(model, golds, settings, linked=given)
    write_tsv(arguments.out, rows, COLUMNS)
    return label_of(device)

"""Translate the test set by beam search and score it with sacrebleu."""

import argparse
import sys
from pathlib import Path

from heads.base.files import read_references, write_json, write_lines, write_tsv
from heads.base.names import REFERENCES
from heads.base.provenance import made_by
from heads.cli._flags import (
    add_analysis_arguments,
    add_output_argument,
    add_path_argument,
    settings_of,
    tokeniser_named,
)
from heads.config.analyses import TranslateSettings
from heads.model.folder import load_folder
from heads.text.encoding import vocabulary_of
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick
from heads.translation.bleu import COLUMNS
from heads.translation.scoring import scored
from heads.translation.text_scores import bleu, bleu_statistics, tokeniser_of

SCORES = (("BLEU", "bleu", "signature"), ("chrF", "chrf", "chrf_signature"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_analysis_arguments(parser)
    add_path_argument(parser, "--source", "token file of the source side")
    parser.add_argument("--text", type=Path, help="plain text of the source side, to score as if it were a translation")
    add_path_argument(parser, "--references", "plain text of the target side")
    parser.add_argument("--against", default=REFERENCES, help="what the references are, if a model wrote them")
    add_path_argument(parser, "--target-bpe", "SentencePiece model of the target side")
    add_output_argument(parser, "--translations", what="translations to write")
    add_output_argument(parser, "--bleu", what="score to write, JSON")
    what = "table to write: the counts behind BLEU in each sentence"
    add_output_argument(parser, "--statistics", what=what, required=False)


def run(arguments: argparse.Namespace) -> str:
    """Translate, score, and write everything."""
    device = pick(arguments.device, arguments.threads)
    settings = settings_of(arguments, TranslateSettings, "translate")
    model = load_folder(arguments.model).to(device)
    source, vocabulary = Tokens(arguments.source), vocabulary_of(arguments.target_bpe)
    references = read_references(arguments.references, str(arguments.source), len(source))
    tokeniser = tokeniser_of(references, tokeniser_named(arguments))
    texts, references, score = scored(model, source, references, vocabulary, settings, device, tokeniser)
    if arguments.text:
        copied = read_references(arguments.text, str(arguments.source), len(source))
        # Copying the source gets some names and numbers right; a translation has to be better than that.
        score["copied_bleu"] = bleu(copied[: len(texts)], references, tokeniser)["bleu"]
    write_lines(arguments.translations, texts)
    if arguments.statistics:
        write_tsv(arguments.statistics, bleu_statistics(texts, references, tokeniser), COLUMNS)
    made = made_by(device=label_of(device), threads=arguments.threads)
    write_json(arguments.bleu, {**score, "against": arguments.against, "provenance": made})
    scores = (f"{name} {score[key]:.2f} {score[signature]}" for name, key, signature in SCORES)
    print(f"{', '.join(scores)}, against the {arguments.against}", file=sys.stderr)
    return label_of(device)

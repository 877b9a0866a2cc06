"""Attention maps of all heads for a few sentences, with the model's output."""

import argparse
import json
import sys

from heads.analysis.maps_of_text import maps_of_lines, maps_of_sentences, read_examples, read_sentences
from heads.base.files import UserError, write_text
from heads.cli._flags import add_analysis_arguments, add_output_argument, add_path_argument, settings_of
from heads.config.analyses import MapsSettings, TranslateSettings
from heads.model.folder import load_answering
from heads.model.transformer import Transformer
from heads.text.encoding import vocabulary_of
from heads.text.labels import Labels
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_analysis_arguments(parser)
    add_path_argument(parser, "--source-bpe", "source SentencePiece model")
    add_path_argument(parser, "--target-bpe", "SentencePiece model of the target side, or its labels")
    add_path_argument(
        parser,
        "--sentences",
        "source sentences: CoNLL-U, or plain lines in a .txt; for a classifier, one example per line",
    )
    add_path_argument(parser, "--labels", "for examples: the correct label of each line", "?")
    add_path_argument(parser, "--trees", "for examples, if known: the trees of their sentences in order, CoNLL-U", "?")
    add_output_argument(parser, "--out", what="JSON file to write")


def run(arguments: argparse.Namespace) -> str:
    """Choose sentences, translate them or predict their labels, and write the maps."""
    settings = settings_of(arguments, MapsSettings, "maps")
    search = settings_of(arguments, TranslateSettings, "translate")
    device = pick(arguments.device, arguments.threads)
    model = load_answering(arguments.model).to(device)
    source = vocabulary_of(arguments.source_bpe)
    if isinstance(model, Transformer):
        target = vocabulary_of(arguments.target_bpe)
        result = maps_of_sentences(model, source, target, read_sentences(arguments.sentences), settings, search)
    elif arguments.labels is None:
        raise UserError(f"{arguments.model} classifies: give the labels of its examples with --labels.")
    else:
        examples, answers = read_examples(arguments.sentences, arguments.labels)
        labels, trees = Labels(arguments.target_bpe), arguments.trees
        answers = labels.named(answers, arguments.labels)
        result = maps_of_lines(model, source, labels, examples, answers, trees, settings, search.batch_tokens)
    if not result:
        wanted = f"{settings.min_words} to {settings.max_words} words"
        print(f"{arguments.sentences}: no sentence has {wanted}, so the file of maps stays empty", file=sys.stderr)
    write_text(arguments.out, json.dumps(result, ensure_ascii=False) + "\n")
    return label_of(device)

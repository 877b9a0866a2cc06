"""Attention maps of all heads for a few sentences, with the model's output."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from heads.analysis.maps_of_text import maps_of_lines, maps_of_sentences, read_examples, read_sentences
from heads.base.files import UserError, write_text
from heads.cli._flags import add_device_arguments, add_settings_argument
from heads.config.analyses import MapsSettings, TranslateSettings
from heads.config.settings import section
from heads.model.folder import load_model
from heads.model.transformer import Transformer
from heads.text.encoding import vocabulary_of
from heads.text.labels import Labels
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--model", type=Path, required=True, help="folder of a trained model")
    add_settings_argument(parser)
    parser.add_argument("--source-bpe", type=Path, required=True, help="source SentencePiece model")
    parser.add_argument(
        "--target-bpe", type=Path, required=True, help="SentencePiece model of the target side, or its labels"
    )
    parser.add_argument(
        "--sentences",
        type=Path,
        required=True,
        help="source sentences: CoNLL-U, or plain lines in a .txt; for a classifier, one example per line",
    )
    parser.add_argument("--labels", type=Path, help="for examples: the correct label of each line")
    parser.add_argument("--trees", type=Path, help="for examples: the trees of their sentences in order, CoNLL-U")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Choose sentences, translate them or predict their labels, and write the maps."""
    content = arguments.settings
    settings, search = section(MapsSettings, content["maps"]), section(TranslateSettings, content["translate"])
    device = pick(arguments.device, arguments.threads)
    model = load_model(arguments.model).to(device)
    source = vocabulary_of(arguments.source_bpe)
    if isinstance(model, Transformer):
        target = vocabulary_of(arguments.target_bpe)
        result = maps_of_sentences(model, source, target, read_sentences(arguments.sentences), settings, search)
    elif arguments.labels is None:
        raise UserError(f"{arguments.model} classifies: give the labels of its examples with --labels.")
    else:
        examples = read_examples(arguments.sentences, arguments.labels)
        labels, trees = Labels(arguments.target_bpe), arguments.trees
        result = maps_of_lines(model, source, labels, *examples, trees, settings, search.batch_tokens)
    if not result:
        wanted = f"{settings.min_words} to {settings.max_words} words"
        print(f"{arguments.sentences}: no sentence has {wanted}, so the file of maps stays empty", file=sys.stderr)
    write_text(arguments.out, json.dumps(result, ensure_ascii=False) + "\n")
    return label_of(device)

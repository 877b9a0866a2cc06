"""`maps`: a few sentences, what one model makes of them, and the attention of all its heads, for looking at."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from heads.analysis.attention_maps import examples_to_show, maps, maps_of_examples, sentences_to_show
from heads.analysis.attention_weights import attend_classifying, attend_translating
from heads.base.files import UserError, read_lines, read_yaml, write_text
from heads.cli._flags import add_device_arguments
from heads.config.analyses import MapsSettings, TranslateSettings
from heads.config.settings import section
from heads.model.encoder import Encoder
from heads.model.folder import load_model
from heads.model.transformer import Transformer
from heads.syntax.alignment import Words, words_of
from heads.syntax.conllu import Sentence, read_conllu
from heads.syntax.tokenising import words_of_text
from heads.text.labels import Labels
from heads.text.vocabulary import Vocabulary
from heads.text.wordpieces import vocabulary_of
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads maps`."""
    parser.add_argument("--model", type=Path, required=True, help="folder of a trained model")
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--source-bpe", type=Path, required=True, help="source SentencePiece model")
    parser.add_argument(
        "--target-bpe", type=Path, required=True, help="SentencePiece model of the target side, or its labels"
    )
    parser.add_argument(
        "--sentences",
        type=Path,
        required=True,
        help="source sentences: parsed, CoNLL-U, or plain lines in a .txt; to classify, an example a line",
    )
    parser.add_argument("--labels", type=Path, help="of examples: the label that each line is to have")
    parser.add_argument("--trees", type=Path, help="of examples: the trees of their sentences in turn, CoNLL-U")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Choose sentences, let the model translate them or tell their labels, write the maps."""
    content = read_yaml(arguments.settings)
    settings, search = section(MapsSettings, content["maps"]), section(TranslateSettings, content["translate"])
    device = pick(arguments.device, arguments.threads)
    model = load_model(arguments.model).to(device)
    if isinstance(model, Transformer):
        result = _translated(model, arguments, settings, search)
    else:
        result = _classified(model, arguments, settings, search)
    if not result:
        wanted = f"{settings.min_words} to {settings.max_words} words"
        print(f"{arguments.sentences}: no sentence has {wanted}, the file of maps stays empty", file=sys.stderr)
    write_text(arguments.out, json.dumps(result, ensure_ascii=False) + "\n")
    return label_of(device)


def _translated(
    model: Transformer, arguments: argparse.Namespace, settings: MapsSettings, search: TranslateSettings
) -> list[dict[str, Any]]:
    source, target = Vocabulary(arguments.source_bpe), Vocabulary(arguments.target_bpe)
    path = arguments.sentences
    lines = map(words_of_text, read_lines(path)) if path.suffix == ".txt" else read_conllu(path)
    sentences = sentences_to_show(words_of(lines, source), settings)
    return maps(attend_translating(model, sentences, search), source, target)


def _classified(
    model: Encoder, arguments: argparse.Namespace, settings: MapsSettings, search: TranslateSettings
) -> list[dict[str, Any]]:
    if arguments.labels is None:
        raise UserError(
            f"{arguments.model} is of a model that classifies: give --labels, what its examples are to have."
        )
    source, labels = vocabulary_of(arguments.source_bpe), Labels(arguments.target_bpe)
    lines, wanted = read_lines(arguments.sentences), read_lines(arguments.labels)
    if len(lines) != len(wanted):
        raise UserError(
            f"{arguments.sentences} has {len(lines)} examples and {arguments.labels} {len(wanted)} labels: "
            "give both of one text."
        )
    examples = examples_to_show(_sentences_of(lines, arguments.trees, source), settings)
    return maps_of_examples(attend_classifying(model, examples, search.batch_tokens), source, labels.words, wanted)


def _sentences_of(lines: Iterable[str], trees: Path | None, source: Vocabulary) -> Iterator[list[Words]]:
    """The sentences of each example; with their trees, if there are any."""
    examples = [line.split("\t") for line in lines]
    texts = chain.from_iterable(examples)
    words = words_of(_trees_of(texts, trees) if trees else map(words_of_text, texts), source)
    for example in examples:
        yield [next(words) for _ in example]


def _trees_of(texts: Iterable[str], path: Path) -> Iterator[Sentence]:
    """The tree of each sentence. Raises UserError for a file that has not just these."""
    trees = read_conllu(path)
    for text in texts:
        tree = next(trees, None)
        if tree is None or tree.text != text:
            raise UserError(
                f"{path} has no tree of {text!r} where its example stands: make the trees of this text anew."
            )
        yield tree

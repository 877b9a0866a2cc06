"""`maps`: a few sentences, their translations by one model, and the attention of all its heads, for looking at."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from heads.analysis.attention_maps import maps, sentences_to_show
from heads.analysis.attention_weights import attend_translating
from heads.base.files import read_lines, read_yaml, write_text
from heads.cli._flags import add_device_arguments
from heads.config.analyses import MapsSettings, TranslateSettings
from heads.config.settings import section
from heads.model.folder import load_folder
from heads.syntax.alignment import words_of
from heads.syntax.conllu import read_conllu
from heads.syntax.tokenising import words_of_text
from heads.text.vocabulary import Vocabulary
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads maps`."""
    parser.add_argument("--model", type=Path, required=True, help="folder of a trained model")
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--source-bpe", type=Path, required=True, help="source SentencePiece model")
    parser.add_argument("--target-bpe", type=Path, required=True, help="target SentencePiece model")
    parser.add_argument(
        "--sentences", type=Path, required=True, help="source sentences: parsed, CoNLL-U, or plain lines in a .txt"
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Choose sentences, let the model translate them, write the maps."""
    content = read_yaml(arguments.settings)
    settings, search = section(MapsSettings, content["maps"]), section(TranslateSettings, content["translate"])
    device = pick(arguments.device, arguments.threads)
    model = load_folder(arguments.model).to(device)
    source, target = Vocabulary(arguments.source_bpe), Vocabulary(arguments.target_bpe)
    path = arguments.sentences
    lines = map(words_of_text, read_lines(path)) if path.suffix == ".txt" else read_conllu(path)
    sentences = sentences_to_show(words_of(lines, source), settings)
    if not sentences:
        wanted = f"{settings.min_words} to {settings.max_words} words"
        print(f"{path}: no sentence has {wanted}, the file of maps stays empty", file=sys.stderr)
    result = maps(attend_translating(model, sentences, search), source, target)
    write_text(arguments.out, json.dumps(result, ensure_ascii=False) + "\n")
    return label_of(device)

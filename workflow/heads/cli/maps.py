"""`maps`: attention maps on the words of a few parsed sentences, for looking at."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from heads.analysis.attention_maps import maps, sentences_to_show
from heads.analysis.attention_weights import attend
from heads.base.files import read_yaml, write_text
from heads.cli._flags import add_device_arguments
from heads.config.analyses import MapsSettings
from heads.config.settings import section
from heads.model.folder import load_folder
from heads.syntax.alignment import words_of
from heads.syntax.conllu import read_conllu
from heads.text.vocabulary import Vocabulary
from heads.training.devices import label_of, pick

BATCH_TOKENS = 4000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads maps`."""
    parser.add_argument("--model", type=Path, required=True, help="folder of a trained model")
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--source-bpe", type=Path, required=True, help="source SentencePiece model")
    parser.add_argument("--trees", type=Path, required=True, help="parsed source sentences, CoNLL-U")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Choose sentences, run the encoder on them, write the maps."""
    settings = section(MapsSettings, read_yaml(arguments.settings)["maps"])
    device = pick(arguments.device, arguments.threads)
    model = load_folder(arguments.model).to(device)
    sentences = sentences_to_show(words_of(read_conllu(arguments.trees), Vocabulary(arguments.source_bpe)), settings)
    if not sentences:
        wanted = f"{settings.min_words} to {settings.max_words} words"
        print(f"{arguments.trees}: no sentence has {wanted}, the file of maps stays empty", file=sys.stderr)
    result = maps(attend(model, sentences, BATCH_TOKENS), model.shape.live_heads["enc_self"])
    write_text(arguments.out, json.dumps(result, ensure_ascii=False) + "\n")
    return label_of(device)

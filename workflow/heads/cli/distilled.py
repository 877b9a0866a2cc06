"""Translate sentences with a model, so that it or another model can be trained on the translations."""

import argparse
import sys
from functools import partial
from pathlib import Path

from heads.cli._flags import add_device_arguments, add_output_argument, add_path_argument
from heads.config.corpus_parts import FileSpec
from heads.corpus.documentation import documentation
from heads.corpus.pairs import read_text
from heads.interop.bundle import open_translator
from heads.training.devices import label_of, pick
from heads.translation.distilled import drawn, write_distilled


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_path_argument(parser, "--model", "folder of the model, as written by import")
    parser.add_argument("--sentences", type=int, required=True, help="number of sentences to translate")
    parser.add_argument("--after", type=int, default=0, help="number of sentences to skip first")
    add_path_argument(parser, "--text", "sentences, one per line; none: installed Python packages' documentation", "?")
    parser.add_argument("--member", nargs="?", help="name of the file to read if --text is an archive")
    add_output_argument(parser, "--source", what="file to write: source sentences")
    add_output_argument(parser, "--target", what="file to write: their translations")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Draw the sentences and translate them greedily, as Firefox does."""
    file = FileSpec(path=arguments.text, member=arguments.member)
    lines = read_text(file, Path()) if arguments.text else documentation()
    device = pick(arguments.device, arguments.threads)
    translator = open_translator(
        arguments.model, device, beam=1, length_penalty=0.0, batch_tokens=3000, max_subwords=200
    )
    sources = drawn(lines, arguments.sentences, arguments.after, translator.source)
    report = partial(print, file=sys.stderr, flush=True)
    write_distilled(sources, translator, arguments.source, arguments.target, report)
    return label_of(device)

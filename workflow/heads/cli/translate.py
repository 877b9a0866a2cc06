"""Translate plain text with any trained model: sentences in, a line each, and their translations out."""

from __future__ import annotations

import argparse
import math
import os
import sys
from pathlib import Path

from heads.model.folder import load_folder
from heads.training.devices import add_device_arguments, pick
from heads.translation.model_folder import load_vocabularies, search_of
from heads.translation.stream import Translator, plain_lines, translated

BLOCK_LINES = 1000
"""How many lines are read before the first is answered, so that sentences of like length can share a batch."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads translate`."""
    parser.add_argument("--model", type=Path, required=True, help="folder of a run, or an exported one")
    parser.add_argument("--beam", type=count, help="width of the beam; 1 is greedy (default: as the model was scored)")
    parser.add_argument("--length-penalty", type=exponent, help="exponent of the length (default: as it was scored)")
    parser.add_argument("--batch-tokens", type=count, default=4000, help="source pieces translated at once")
    parser.add_argument("--max-pieces", type=count, default=200, help="longer lines are cut between words")
    add_device_arguments(parser)


def count(text: str) -> int:
    """A whole number above zero."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return number


def exponent(text: str) -> float:
    """A number of at least zero, as in the settings."""
    number = float(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no number of at least zero")
    return number


def run(arguments: argparse.Namespace) -> None:
    """Translate until the input ends; line by line when a person types."""
    translator = open_translator(arguments)
    source = plain_lines(sys.stdin.buffer, tell)
    block_lines = 1 if sys.stdin.isatty() else BLOCK_LINES
    try:
        for block in translated(source, translator, block_lines=block_lines, tell=tell):
            sys.stdout.buffer.write("".join(f"{line}\n" for line in block).encode())
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Whoever read has enough; without this Python would complain once more when it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_translator(arguments: argparse.Namespace) -> Translator:
    """The model that the flags name, on its device; what they leave open is as the model was scored."""
    device = pick(arguments)
    model = load_folder(arguments.model)
    source, target = load_vocabularies(arguments.model, model)
    beam, length_penalty = arguments.beam, arguments.length_penalty
    if beam is None or length_penalty is None:
        scored = search_of(arguments.model)
        beam = scored[0] if beam is None else beam
        length_penalty = scored[1] if length_penalty is None else length_penalty
    return Translator(
        model.to(device),
        source,
        target,
        device,
        beam=beam,
        length_penalty=length_penalty,
        batch_tokens=arguments.batch_tokens,
        max_pieces=arguments.max_pieces,
    )


def tell(sentence: str) -> None:
    """Say something beside the translations."""
    print(sentence, file=sys.stderr)

"""Translate plain text with any model, or do what it does: one sentence per line in, one output per line out.

heads translate firefox/en-pt < source.txt > translations.txt
"""

import argparse
import math
import os
import sys
from functools import partial
from pathlib import Path

from heads.base.files import UserError, full_disk_named, some_lines
from heads.cli._flags import (
    add_device_arguments,
    add_metric_argument,
    add_model_argument,
    add_tokeniser_argument,
    languages_of,
)
from heads.interop.bundle import open_translator
from heads.interop.opening import open_model
from heads.training.devices import pick
from heads.translation.scoring import metric_named, score_in_words
from heads.translation.stream import plain_lines, translated
from heads.translation.text_scores import tokeniser_of

BLOCK_LINES = 1000
"""Lines read before the first is translated, so that sentences of similar length can share a batch."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_model_argument(parser)
    parser.add_argument("--references", type=Path, help="score the outputs against these lines, at the end")
    add_metric_argument(parser)
    add_tokeniser_argument(parser)
    parser.add_argument("--beam", type=count, help="beam size; 1 is greedy (default: as when the model was scored)")
    parser.add_argument(
        "--length-penalty", type=exponent, help="exponent of the length (default: as when it was scored)"
    )
    parser.add_argument("--batch-tokens", type=count, default=4000, help="source subwords per batch")
    parser.add_argument(
        "--max-subwords", type=count, default=200, help="longer lines are translated in parts, cut between words"
    )
    add_device_arguments(parser)


def count(text: str) -> int:
    """Parse a positive integer."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive integer")
    return number


def exponent(text: str) -> float:
    """Parse a number of at least zero, as in the settings."""
    number = float(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of at least zero")
    return number


def run(arguments: argparse.Namespace) -> None:
    """Translate until the input ends; line by line if it is typed."""
    references = arguments.references and some_lines(arguments.references)
    metric, tokeniser = metric_named(arguments.metric), tokeniser_of(references or (), arguments.tokenize)
    device, report = pick(arguments.device, arguments.threads), partial(print, file=sys.stderr)
    translator = open_translator(
        open_model(arguments.model, arguments.prefix, languages=languages_of(arguments)),
        device,
        beam=arguments.beam,
        length_penalty=arguments.length_penalty,
        batch_tokens=arguments.batch_tokens,
        max_subwords=arguments.max_subwords,
    )
    translations: list[str] = []
    at_once = 1 if sys.stdin.isatty() else BLOCK_LINES
    try:
        for block in translated(plain_lines(sys.stdin.buffer, report), translator, block_lines=at_once, report=report):
            with full_disk_named(Path("the standard output")):
                sys.stdout.buffer.write("".join(f"{line}\n" for line in block).encode())
                sys.stdout.buffer.flush()
            if references is not None:
                translations += block
    except (BrokenPipeError, UserError) as error:
        # Without this, Python would complain again when it closes the broken stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, UserError):
            raise
    if references is not None:
        report(score_in_words(translations, references, tokeniser, metric))

"""Translate plain text with any model, or do what it does: one sentence per line in, one output per line out.

heads translate firefox/en-pt < source.txt > translations.txt
"""

import math
import os
import sys
from argparse import ArgumentTypeError
from functools import partial
from pathlib import Path
from typing import Annotated

from heads.base.files import UserError, full_disk_named, some_lines
from heads.base.names import AUTO
from heads.cli._flags import METRIC, AnyModel, Languages, Machine, Metric, Tokeniser
from heads.interop.bundle import open_translator
from heads.interop.opening import open_model
from heads.training.devices import pick
from heads.translation.scoring import metric_named, score_in_words
from heads.translation.stream import plain_lines, translated
from heads.translation.text_scores import tokeniser_of

BLOCK_LINES = 1000
"""Lines read before the first is translated, so that sentences of similar length can share a batch."""


def count(text: str) -> int:
    """Parse a positive integer."""
    number = int(text)
    if number < 1:
        raise ArgumentTypeError(f"{text} is not a positive integer")
    return number


def exponent(text: str) -> float:
    """Parse a number of at least zero, as in the settings."""
    number = float(text)
    if not 0 <= number < math.inf:
        raise ArgumentTypeError(f"{text} is not a number of at least zero")
    return number


def run(
    model: AnyModel,
    /,
    *,
    languages: Languages,
    references: Annotated[Path | None, "score the outputs against these lines, at the end"] = None,
    metric: Metric = METRIC,
    tokenize: Tokeniser = AUTO,
    beam: Annotated[
        int | None, {"type": count}, "beam size; 1 is greedy (default: as when the model was scored)"
    ] = None,
    length_penalty: Annotated[
        float | None, {"type": exponent}, "exponent of the length (default: as when it was scored)"
    ] = None,
    batch_tokens: Annotated[int, {"type": count}, "source subwords per batch"] = 4000,
    max_subwords: Annotated[int, {"type": count}, "longer lines are translated in parts, cut between words"] = 200,
    machine: Machine,
) -> None:
    """Translate until the input ends; line by line if it is typed."""
    wanted = some_lines(references) if references else None
    scored, tokeniser = metric_named(metric), tokeniser_of(wanted or (), tokenize)
    device, report = pick(machine.device, machine.threads), partial(print, file=sys.stderr)
    translator = open_translator(
        open_model(model, languages.prefix, languages=languages.pair),
        device,
        beam=beam,
        length_penalty=length_penalty,
        batch_tokens=batch_tokens,
        max_subwords=max_subwords,
    )
    translations: list[str] = []
    at_once = 1 if sys.stdin.isatty() else BLOCK_LINES
    try:
        for block in translated(plain_lines(sys.stdin.buffer, report), translator, block_lines=at_once, report=report):
            with full_disk_named(Path("the standard output")):
                sys.stdout.buffer.write("".join(f"{line}\n" for line in block).encode())
                sys.stdout.buffer.flush()
            if wanted is not None:
                translations += block
    except (BrokenPipeError, UserError) as error:
        # Without this, Python would complain again when it closes the broken stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, UserError):
            raise
    if wanted is not None:
        report(score_in_words(translations, wanted, tokeniser, scored))

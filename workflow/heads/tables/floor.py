"""The floor of claims about losing little: a model that can hardly do its task has little to lose."""

from __future__ import annotations

from typing import Any

from heads.base.names import BLEU
from heads.tables.claims_michel import share
from heads.tables.reading import SCORED, Frames

LEAST = 5.0
"""BLEU of a translator; ours, as is the next."""
TIMES_COPIED = 2.0
"""So many times the BLEU of the source text taken for the translation: names and numbers alone score, too."""


def too_weak(frames: Frames) -> bool:
    """Whether the unpruned model of one experiment and seed is too weak for a claim about losing little.

    A classifier is where the lower end of its accuracy's exact 95 % interval, as of draws of test examples, is not
    above the share of them that the likeliest label has. A translator is below LEAST, or below TIMES_COPIED the BLEU of
    the copied source; where that was not scored, below LEAST alone. A model without a score is not called weak.
    """
    if SCORED not in frames:
        return False
    scores = frames[SCORED]
    return any(_is_weak(row) for row in scores[scores["kind"] == "baseline"].to_dict("records"))


def _is_weak(row: dict[str, Any]) -> bool:
    score = row["score"]
    if row["metric"] == BLEU:
        return bool(score < LEAST or score < TIMES_COPIED * row["copied_bleu"])
    of = int(row["sentences"])
    return not 100 * share(round(score * of / 100), of).low > row["majority"]

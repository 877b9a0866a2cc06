"""The floor for claims about small losses: a model that can hardly do its task has little to lose."""

from __future__ import annotations

from typing import Any

from heads.base.names import BLEU
from heads.tables.claims_michel import share
from heads.tables.reading import SCORED, Frames

LEAST = 5.0
"""The least BLEU of a translation model; our bound, as is the next."""
TIMES_COPIED = 2.0
"""The same as a multiple of the BLEU of the copied source text, since names and numbers alone score."""


def too_weak(frames: Frames) -> bool:
    """Whether the unpruned model of one experiment and seed is too weak for a claim about a small loss.

    A classifier is too weak if the lower end of its accuracy's exact 95 % interval, over draws of test examples, is not
    above the share of the likeliest label. A translation model is too weak below LEAST, or below TIMES_COPIED times the
    BLEU of the copied source if that was scored. A model without a score is not called weak.
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

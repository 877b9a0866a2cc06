"""The floor of claims about losing little: a model that can hardly do its task has little to lose."""

from __future__ import annotations

from heads.tables.claims_michel import share
from heads.tables.reading import Frames

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
    for name, weak in (("accuracy.json", _guesses), ("bleu.json", _hardly_translates)):
        scores = frames.get(name)
        if scores is not None:
            own = scores[scores["kind"] == "baseline"]
            return any(weak(row) for row in own.to_dict("records"))
    return False


def _guesses(score: dict[str, float]) -> bool:
    right = round(score["accuracy"] * score["examples"] / 100)
    return not 100 * share(right, int(score["examples"])).low > score["majority"]


def _hardly_translates(score: dict[str, float]) -> bool:
    return score["bleu"] < LEAST or score["bleu"] < TIMES_COPIED * score["copied_bleu"]

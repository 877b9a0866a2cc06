"""From a score of every head to the heads that are kept: best, random, or in steps. No torch.

A head is (attention, layer, head), the head under its original number. Among equal scores the head that comes first in
the order of every table is the better one, so that a choice is the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np

from heads.base.files import UserError
from heads.base.names import ATTENTIONS
from heads.model.shape import Head

Scores = Mapping[Head, float]


def place(head: Head) -> tuple[int, int, int]:
    """Where a head stands in every table."""
    attention, layer, number = head
    return ATTENTIONS.index(attention), layer, number


def ranked(scores: Scores) -> list[Head]:
    """All heads, the best first.

    Raises ValueError when a score is not finite.
    """
    for head, score in scores.items():
        if not math.isfinite(score):
            raise ValueError(f"the score of head {head} is {score}")
    return sorted(scores, key=lambda head: (-scores[head], place(head)))


def reversed_scores(scores: Scores) -> dict[Head, float]:
    """The control that takes the worst heads for the best."""
    return {head: -score for head, score in scores.items()}


def random_scores(heads: Collection[Head], seed: int) -> dict[Head, float]:
    """The control that knows nothing: every order of the heads is equally likely, and the same for the same seed."""
    order = np.random.default_rng(seed).permutation(len(heads)).tolist()
    return dict(zip(sorted(heads, key=place), map(float, order), strict=True))


def keep_best(scores: Scores, budget: int) -> list[Head]:
    """The `budget` best heads, in the order of tables.

    Raises UserError when there are fewer heads.
    """
    if not 0 <= budget <= len(scores):
        raise UserError(f"{budget} heads are to be kept, but there are {len(scores)}: give a number from 0 to that.")
    return sorted(ranked(scores)[:budget], key=place)


def steps(scores: Scores, share: float = 0.1) -> list[list[Head]]:
    """The heads to mask at one share of all heads, at two, and so on up to all: each step adds the worst that are left.

    (Michel et al. 2019, sec. 4: the order is fixed once.) Numbers of heads are rounded to the nearest, halves up.
    Raises UserError when `share` is not in (0, 1].
    """
    if not 0 < share <= 1:
        raise UserError(f"heads are to be masked in steps of {share:g}: give a share above 0, at most 1.")
    worst_first = ranked(scores)[::-1]
    number = math.floor(1 / share + 1e-9)
    return [worst_first[: math.floor(len(worst_first) * share * step + 0.5 + 1e-9)] for step in range(1, number + 1)]

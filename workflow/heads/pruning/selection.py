"""Choose heads by their scores: the best, random ones, or in steps. No torch.

A head is (attention, layer, head), with its original number. Of heads with equal scores the first in table order counts
as the better one, so that a choice is the same everywhere.
"""

import math
from collections.abc import Collection, Mapping

import numpy as np

from heads.base.files import UserError
from heads.base.names import ATTENTIONS
from heads.model.shape import Head

Scores = Mapping[Head, float]


def place(head: Head) -> tuple[int, int, int]:
    """A head's position in table order, as a sort key."""
    attention, layer, number = head
    return ATTENTIONS.index(attention), layer, number


def ranked(scores: Scores) -> list[Head]:
    """All heads, the best first. Raises ValueError if a score is not finite."""
    for head, score in scores.items():
        if not math.isfinite(score):
            raise ValueError(f"the score of head {head} is {score}, which is not finite")
    return sorted(scores, key=lambda head: (-scores[head], place(head)))


def random_scores(heads: Collection[Head], seed: int) -> dict[Head, float]:
    """Scores of a random order for a control: all orders are equally likely, and a seed always gives the same."""
    order = np.random.default_rng(seed).permutation(len(heads)).tolist()
    return dict(zip(sorted(heads, key=place), map(float, order), strict=True))


def keep_best(scores: Scores, budget: int) -> list[Head]:
    """The `budget` best heads, in table order. Raises UserError if there are fewer heads."""
    if not 0 <= budget <= len(scores):
        raise UserError(f"cannot keep {budget} of {len(scores)} heads: keep at least 0 and at most all of them.")
    return sorted(ranked(scores)[:budget], key=place)


def steps(scores: Scores, share: float = 0.1) -> list[list[Head]]:
    """The heads masked at each step: every step adds a `share` of all heads, the worst that are left.

    The order is fixed once (Michel et al. 2019, sec. 4). Numbers of heads are rounded to the nearest, halves up.
    Raises UserError if `share` is not in (0, 1].
    """
    if not 0 < share <= 1:
        raise UserError(f"cannot mask heads in steps of {share:g}: give a share above 0 and at most 1.")
    worst_first = ranked(scores)[::-1]
    number = math.floor(1 / share + 1e-9)
    return [worst_first[: math.floor(len(worst_first) * share * step + 0.5 + 1e-9)] for step in range(1, number + 1)]

"""BLEU of sentences drawn with replacement, for intervals of what is lost: the draws of `heads.bootstrap`.

Corpus BLEU is a function of sums over sentences, so a draw needs no new count. Two lists of translations of the same
sentences are compared on the same draws. S sentences, B draws.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

from heads.bootstrap import interval, resampled_sums

ORDERS = 4
"""The longest n-grams that BLEU counts."""


def sentence_counts(hypotheses: Sequence[str], references: Sequence[str]) -> NDArray[np.float32]:
    """Matching n-grams and all n-grams of each order, pieces of the translation and of its reference [S, 10]."""
    metric = BLEU(effective_order=True)  # of no effect on counts; without it sacrebleu warns of scores of sentences
    scores = [metric.sentence_score(line, [wanted]) for line, wanted in zip(hypotheses, references, strict=True)]
    rows = [(*score.counts, *score.totals, score.sys_len, score.ref_len) for score in scores]
    return np.array(rows, np.float32).reshape(len(rows), 2 * ORDERS + 2)


def bleu_of(sums: NDArray[np.floating]) -> float:
    """Corpus BLEU (0 to 100) of summed counts [10], smoothed as sacrebleu does."""
    whole = [round(float(value)) for value in sums]
    counts, totals, (length, wanted) = whole[:ORDERS], whole[ORDERS:-2], whole[-2:]
    return float(BLEU.compute_bleu(counts, totals, length, wanted, smooth_method="exp").score)


def bleu_draws(counts: NDArray[np.float32], resamples: int) -> NDArray[np.float64]:
    """BLEU of each draw [B] of sentences with these counts; of as many sentences always the same draws."""
    return np.array([bleu_of(sums) for sums in resampled_sums(counts, resamples)])


def ends(values: NDArray[np.float64]) -> tuple[float, float]:
    """The 95 % interval of values over draws [B]."""
    low, high = interval(values)
    return float(low), float(high)

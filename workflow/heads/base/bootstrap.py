"""Draws of sentences: with replacement for confidence intervals, by coin flips for significance tests.

Intervals are by bootstrap, the percentile method (Efron and Tibshirani 1993, ch. 13): each draw has as many sentences
as there are. Counts of one sentence stay together, because its words are not independent. The same number of sentences
gives the same draws, so that two models are compared on the same ones. No torch.

S sentences, C counts, B draws.
"""

import warnings

import numpy as np
from numpy.typing import NDArray

SEED = 1
CONFIDENCE = 0.95
SIGNIFICANT = 0.05
"""A p value below this counts as an effect in verdicts on claims and in figures; it is the level of our intervals."""
ROUNDING = 1e-9
"""Numbers that differ by less count as equal, so that 0.3 is 0.1 above 0.2 in floating point too."""
MICHEL_SIGNIFICANT = 0.01
"""The level of Michel et al. 2019 (Tables 1 and 2), which decides on the heads and layers beside theirs."""
WEIGHTS_AT_ONCE = 8_000_000
"""Number of sentence weights held in memory at a time."""


def resampled_sums(counts: NDArray[np.float32], draws: int) -> NDArray[np.float64]:
    """Sums [B, C] of counts [S, C] over the sentences of each draw with replacement; exact up to 2^24."""
    return _drawn_sums(counts, draws, by_coin=False)


def halved_sums(counts: NDArray[np.float32], draws: int) -> NDArray[np.float64]:
    """Sums [B, C] of counts [S, C] over the sentences that each draw chooses by coin flips; exact up to 2^24."""
    return _drawn_sums(counts, draws, by_coin=True)


def _drawn_sums(counts: NDArray[np.float32], draws: int, *, by_coin: bool) -> NDArray[np.float64]:
    generator = np.random.default_rng(SEED)
    sentences, width = counts.shape
    sums = np.zeros((draws, width))
    if not sentences:
        return sums
    chunk = max(1, WEIGHTS_AT_ONCE // sentences)
    for first in range(0, draws, chunk):
        rows = min(chunk, draws - first)
        drawn = generator.integers(2 if by_coin else sentences, size=(rows, sentences))
        if not by_coin:  # how often each draw contains each sentence
            places = drawn + sentences * np.arange(rows)[:, None]
            drawn = np.bincount(places.ravel(), minlength=places.size).reshape(places.shape)
        sums[first : first + rows] = drawn.astype(np.float32) @ counts
    return sums


def interval(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper end of the central CONFIDENCE of values [B, ...]; NaN is ignored unless all values are NaN."""
    tail = (1 - CONFIDENCE) / 2
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice")
        low = np.nanquantile(values, tail, axis=0, method="lower")
        return low, np.nanquantile(values, 1 - tail, axis=0, method="higher")

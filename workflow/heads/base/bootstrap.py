"""Confidence intervals by bootstrap over sentences: the percentile method (Efron and Tibshirani 1993, ch. 13).

As many sentences as there are get drawn with replacement, many times over. What is counted inside a sentence stays
together, because the words of one sentence are not independent. The same number of sentences gives the same draws, so
that two models are compared on the same ones. No torch.

S sentences, C counts, B draws.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

SEED = 1
CONFIDENCE = 0.95
WEIGHTS_AT_ONCE = 8_000_000
"""How many weights of sentences are held in memory at a time."""


def resampled_sums(counts: NDArray[np.float32], draws: int) -> NDArray[np.float64]:
    """Sums [B, C] of counts [S, C] over the sentences of every draw; exact up to 2^24."""
    generator = np.random.default_rng(SEED)
    sentences, width = counts.shape
    sums = np.zeros((draws, width))
    if not sentences:
        return sums
    chunk = max(1, WEIGHTS_AT_ONCE // sentences)
    for first in range(0, draws, chunk):
        rows = min(chunk, draws - first)
        drawn = generator.integers(sentences, size=(rows, sentences)) + sentences * np.arange(rows)[:, None]
        times = np.bincount(drawn.ravel(), minlength=rows * sentences).reshape(rows, sentences)
        sums[first : first + rows] = times.astype(np.float32) @ counts
    return sums


def interval(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper end of the central CONFIDENCE of values [B, ...]; NaN is no value, and only NaN gives NaN."""
    tail = (1 - CONFIDENCE) / 2
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice")
        low = np.nanquantile(values, tail, axis=0, method="lower")
        return low, np.nanquantile(values, 1 - tail, axis=0, method="higher")

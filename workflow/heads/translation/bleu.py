"""BLEU from what is counted in each sentence, so that sentences can be drawn again without translating (Koehn 2004).

Corpus BLEU as sacrebleu has it by default: n-grams up to four, exponential smoothing of orders without a match, brevity
penalty. No torch and no sacrebleu.

S sentences, C = len(COLUMNS) counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ORDERS = (1, 2, 3, 4)
COLUMNS = (
    "hypothesis_words",
    "reference_words",
    *(f"correct_{order}" for order in ORDERS),
    *(f"total_{order}" for order in ORDERS),
)
"""Columns of `bleu_statistics.tsv`: tokens of both sides, and n-grams of the hypothesis, in the reference and all."""


def bleu_of(sums: NDArray[np.floating]) -> NDArray[np.float64]:
    """BLEU (0 to 100) for sums [..., C] of the counts of some sentences; 0 where no word or no n-gram is there."""
    counts = np.asarray(sums, float)
    hypothesis, reference, correct, total = np.split(counts, [1, 2, 2 + len(ORDERS)], -1)
    defined = (correct[..., 0] > 0) & (total > 0).all(-1)
    # The k-th order without a match counts as half, a quarter, ... of one match.
    halved = np.where(correct > 0, correct, 0.5 ** (correct == 0).cumsum(-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.exp(np.log(halved / total).mean(-1))
        brevity = np.exp(np.minimum(0, 1 - reference / hypothesis))[..., 0]
        return np.where(defined, 100 * brevity * precision, 0.0)

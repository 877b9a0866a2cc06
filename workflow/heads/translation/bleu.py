"""BLEU from per-sentence counts, so that sentences can be resampled without translating again (Koehn 2004).

Corpus BLEU with sacrebleu's defaults: n-grams up to four, exponential smoothing of orders without a match, brevity
penalty. Needs neither torch nor sacrebleu.

S sentences, C = len(STATISTICS) counts.
"""

import numpy as np
from numpy.typing import NDArray

ORDERS = (1, 2, 3, 4)
STATISTICS = (
    "hypothesis_words",
    "reference_words",
    *(f"correct_{order}" for order in ORDERS),
    *(f"total_{order}" for order in ORDERS),
)
"""Columns of `bleu_statistics.tsv`: tokens on both sides, and n-grams of the hypothesis, matched and in total."""


def bleu_of(sums: NDArray[np.floating]) -> NDArray[np.float64]:
    """BLEU (0 to 100) from summed sentence counts [..., C]; 0 if no word matches or an order has no n-grams."""
    counts = np.asarray(sums, float)
    hypothesis, reference, correct, total = np.split(counts, [1, 2, 2 + len(ORDERS)], -1)
    defined = (correct[..., 0] > 0) & (total > 0).all(-1)
    # Orders without a match count as half a match, a quarter, and so on.
    halved = np.where(correct > 0, correct, 0.5 ** (correct == 0).cumsum(-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.exp(np.log(halved / total).mean(-1))
        brevity = np.exp(np.minimum(0, 1 - reference / hypothesis))[..., 0]
        return np.where(defined, 100 * brevity * precision, 0.0)

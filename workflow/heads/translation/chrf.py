"""chrF from counts of each sentence, so that sentences can be resampled without scoring again (Popović 2015).

Corpus chrF2 as sacrebleu has it: n-grams of one to six characters without blanks; recall counts twice as much as
precision, and each of the two is the mean over the orders that both sides have.

S sentences, C = 3 * ORDERS counts.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ORDERS, BETA = 6, 2


def chrf_counts(hypotheses: Sequence[str], references: Sequence[str]) -> NDArray[np.float32]:
    """Counts [S, C] by order: n-grams of the output, unless its reference has none, of the reference, and of both."""
    rows = []
    for texts in zip(hypotheses, references, strict=True):
        said, right = ("".join(text.split()) for text in texts)
        row: list[int] = []
        for order in range(1, ORDERS + 1):
            ours, theirs = (
                Counter(text[start : start + order] for start in range(len(text) - order + 1)) for text in (said, right)
            )
            row += [ours.total() if theirs else 0, theirs.total(), (ours & theirs).total()]
        rows.append(row)
    return np.array(rows, np.float32).reshape(len(rows), 3 * ORDERS)


def chrf_of(sums: NDArray[np.floating]) -> NDArray[np.float64]:
    """chrF (0 to 100) from summed counts [..., C] of sentences; 0 if no character matches."""
    said, right, both = np.moveaxis(np.asarray(sums, float).reshape(*sums.shape[:-1], ORDERS, 3), -1, 0)
    counts = (said > 0) & (right > 0)
    orders = np.maximum(counts.sum(-1), 1)
    precision, recall = (
        np.divide(both, of, out=np.zeros_like(both), where=counts).sum(-1) / orders for of in (said, right)
    )
    below = BETA**2 * precision + recall
    return np.asarray(
        100 * np.divide((1 + BETA**2) * precision * recall, below, out=np.zeros_like(below), where=below > 0)
    )

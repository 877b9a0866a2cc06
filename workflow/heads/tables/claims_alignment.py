"""Claims about where cross-attention of a translation model aligns words, which Garg et al. 2019 use.

Each layer is represented by its head with the lowest error rate at the first step of the settings; see
`heads.analysis.alignment_heads`. The head is chosen on the pairs that it is reported on. Where two layers are compared,
their intervals are treated as independent and the outermost ends are taken, which is wider than 95 % requires.
"""

from collections.abc import Callable

import pandas as pd

from heads.tables.cross_attention import best_heads
from heads.tables.picking import first_of
from heads.tables.reading import Frames
from heads.tables.verdicts import NOT_MEASURED, Finding


def heads_align(frames: Frames) -> Finding:
    """Error rate of the best fixed offset minus that of the best head of all layers."""
    layers = _layers(frames)
    if layers.empty:
        return NOT_MEASURED
    best = layers.loc[layers["aer"].idxmin()]
    return Finding(best["gain"], low=best["gain_low"], high=best["gain_high"])


def aligned_late(frames: Frames) -> Finding:
    """Lowest error rate of the lower half of the layers minus that of the upper half; a middle layer is left out."""
    layers = _layers(frames)
    half = len(layers) // 2
    if half == 0:
        return NOT_MEASURED
    low, high = (part.loc[part["aer"].idxmin()] for part in (layers[:half], layers[-half:]))
    ends = {"low": low["aer_low"] - high["aer_high"], "high": low["aer_high"] - high["aer_low"]}
    return Finding(low["aer"] - high["aer"], **ends)


def last_but_one(frames: Frames) -> Finding:
    """The number of layers with a lower error rate than the last but one; the ends count sure and possible ones.

    chance: the probability that a given one of the layers is the best.
    """
    layers = _layers(frames)
    if len(layers) < 2:
        return NOT_MEASURED
    one, others = layers.iloc[-2], layers.drop(index=layers.index[-2])
    against = (("aer", one["aer"]), ("aer_high", one["aer_low"]), ("aer_low", one["aer_high"]))
    ours, low, high = (int((others[column] < limit).sum()) for column, limit in against)
    return Finding(ours, len(others), low=low, high=high, chance=1 / len(layers))


def _layers(frames: Frames) -> pd.DataFrame:
    """The best head of each layer of the unpruned model, in layer order; no rows without a word alignment."""
    rows = frames["alignment_heads.tsv"]
    return best_heads(first_of(rows[rows["kind"] == "baseline"], "step")).sort_values("layer", ignore_index=True)


ALIGNMENT_CLAIMS: dict[str, Callable[[Frames], Finding]] = {
    "heads_align": heads_align,
    "aligned_late": aligned_late,
    "last_but_one": last_but_one,
}
"""By id in `alignment_claims.csv`."""

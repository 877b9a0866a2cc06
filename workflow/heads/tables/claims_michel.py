"""Claims of Michel et al. 2019 about translation models and BERT, and a number for each from our own runs.

Every function takes the frames of one experiment and seed, by file name; the frame of a missing file has no rows, and
the claim is then not measured.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import comb

import numpy as np
import pandas as pd

from heads.base.bootstrap import CONFIDENCE, MICHEL_SIGNIFICANT
from heads.base.names import ACCURACY, BLEU, HEAD
from heads.tables.michel import LEAST, with_unmasked
from heads.tables.reading import Frames
from heads.tables.verdicts import NOT_MEASURED, UNKNOWN, Finding

NOTICEABLE = {BLEU: 0.25, ACCURACY: 1.0}
"""The largest loss in points that goes unnoticed, by metric: our bounds, as the paper gives none."""

EARLY_EPOCHS = 10
"""The epoch from which the paper's model keeps 85 to 90 % of its BLEU with 40 % of its heads masked (Fig 5)."""

PAPERS_ORDER = "example"


def heads_that_matter(frames: Frames) -> Finding:
    """Share of the encoder heads that lower the score significantly alone; the upper end: or noticeably."""
    sure, possible, of = _losses(_encoder(frames), "")
    return replace(share(sure, of), high=share(possible, of).high)


def gains_among_them(frames: Frames) -> Finding:
    """Share of gains among significant changes of the score; chance: of as many gains if all were false alarms."""
    from scipy.stats import binom  # takes a second to import

    encoder = _encoder(frames)
    significant = encoder[encoder["p_value"] < MICHEL_SIGNIFICANT]
    gains = int((significant["score_change"] > 0).sum())
    # p is two-sided, and swapping both sides turns a gain into an equal loss: half of all false alarms are gains.
    return share(gains, len(significant), chance=float(binom.sf(gains - 1, len(encoder), MICHEL_SIGNIFICANT / 2)))


def _encoder(frames: Frames) -> pd.DataFrame:
    heads = frames["ablation.tsv"]
    return heads[heads["attention"] == "enc_self"]


def layers_with_one_head(frames: Frames, chosen: str) -> Finding:
    """Share of the layers that lose nothing significant with one head; chosen: "" on dev, "_oracle" on test.

    The lower end leaves out layers with a noticeable loss on too few sentences. These are all the layers, not draws
    from many, so the only uncertainty is which of them lose.
    """
    sure, possible, of = _losses(frames["layers_to_one.tsv"], chosen)
    return Finding(1 - sure / of, low=1 - possible / of, high=1 - sure / of) if of else NOT_MEASURED


def _losses(rows: pd.DataFrame, suffix: str) -> tuple[int, int, int]:
    """The number of rows with a significant loss, with a significant or a noticeable loss, and of all rows."""
    change = rows[f"score_change{suffix}"]
    sure = (rows[f"p_value{suffix}"] < MICHEL_SIGNIFICANT) & (change < 0)
    return int(sure.sum()), int((sure | (change < -rows["metric"].map(NOTICEABLE))).sum()), len(rows)


def free_share(frames: Frames) -> Finding:
    """The share of heads masked by importance at which the score, or an end of its interval, first falls noticeably."""
    walk = _walk(frames, PAPERS_ORDER, "all")
    if walk.empty:
        return NOT_MEASURED
    noticeable = NOTICEABLE[walk["metric"].iloc[0]]
    ours, low, high = (
        _crossing(walk["share"], walk[f"score_change{end}"], noticeable) for end in ("", "_low", "_high")
    )
    return Finding(ours, low=low, high=high)


def _crossing(shares: pd.Series, change: pd.Series, noticeable: float) -> float:
    """The share at which the line through the changes first falls by more than `noticeable`; 1 if it never does."""
    points = list(zip(shares, change, strict=True))
    for (before, kept), (after, lost) in pairwise(points):
        if lost < -noticeable:
            return float(before + (after - before) * (kept + noticeable) / (kept - lost))
    return 1.0


def importance_over_ablation(frames: Frames) -> Finding:
    """Mean score by the paper's importance minus that by single heads masked on dev, over steps with some heads masked.

    The ends are means too, which enclose the mean at least as often as each step's ends enclose its number.
    """
    walk = _walk(frames, "ablation", "all")
    between = walk[(walk["share"] > 0) & (walk["share"] < 1)]
    ours, low, high = (float(between[f"score_behind{end}"].mean()) for end in ("", "_low", "_high"))
    full = between["unmasked"].where(between["unmasked"] > 0).max()
    return Finding(ours, low=low, high=high, relative=100 * ours / float(full))


def kept_of_kind(frames: Frames, attention: str, masked: float) -> Finding:
    """Share of the score kept with the share `masked` of the heads of one kind masked by importance."""
    return kept_at(_walk(frames, PAPERS_ORDER, attention), masked)


def source_needed_most(frames: Frames, masked: float) -> Finding:
    """Share kept with self-attention heads masked, the lower of both kinds, minus that with cross-attention masked."""
    source = kept_of_kind(frames, "dec_enc", masked)
    own = [difference(kept_of_kind(frames, kind, masked), source) for kind in ("enc_self", "dec_self")]
    return NOT_MEASURED if any(np.isnan(found.ours) for found in own) else min(own, key=lambda found: found.ours)


def correlation_across_domains(frames: Frames) -> Finding:
    """Pearson's r over all heads of the score changes on test and out of domain, with Fisher's interval."""
    from scipy.stats import pearsonr

    both = frames["ablation.tsv"].merge(frames["ablation.out_of_domain.tsv"], on=[*HEAD], suffixes=("", "_other"))
    if len(both) <= 3:
        return NOT_MEASURED
    found = pearsonr(both["score_change"], both["score_change_other"])
    low, high = found.confidence_interval(CONFIDENCE)
    return Finding(float(found.statistic), low=float(low), high=float(high))


def kept_late(frames: Frames, masked: float) -> Finding:
    """The smallest share of the score kept at any checkpoint from epoch 10 on, with heads masked by importance."""
    late = [part for part in _checkpoints(frames) if part["epoch"].iloc[0] >= EARLY_EPOCHS]
    return min((kept_at(part, masked) for part in late), key=lambda found: found.ours, default=NOT_MEASURED)


def kept_at_the_end(frames: Frames, masked: float) -> Finding:
    """The share of the score kept by the finished model, whatever its epoch, with heads masked by importance."""
    return next((kept_at(part, masked) for part in _checkpoints(frames) if part["finished"].iloc[0]), NOT_MEASURED)


def kept_more_and_more(frames: Frames, masked: float) -> Finding:
    """Share kept by the finished model minus that kept at the first checkpoint with a score to lose."""
    checkpoints = _checkpoints(frames)
    if len(checkpoints) < 2:
        return NOT_MEASURED
    return difference(kept_at_the_end(frames, masked), kept_at(checkpoints[0], masked))


def _checkpoints(frames: Frames) -> list[pd.DataFrame]:
    """The masking walk at each checkpoint that has a score to lose, in training order, the finished model last."""
    rows = with_unmasked(frames["checkpoints.tsv"], ["finished", "update"])
    return [part for _, part in rows[rows["unmasked"] >= LEAST].groupby(["finished", "update"])]


def faster_in_larger_batches(frames: Frames) -> Finding:
    """Speed relative to the unpruned model in the largest batches minus that in the smallest.

    Taken from the model nearest to half of the heads, on a GPU if one was timed. The ends are the outermost ones of
    both ratios over rounds (`heads.analysis.speed`). p_value: the probability that as many rounds at one speed separate
    completely, in either direction; with three rounds or fewer it says nothing.
    """
    timed = frames["speed.tsv"]
    timed = timed[~timed["run"].astype(str).str.startswith("baseline/")]
    on_gpu = ~timed["device"].astype(str).str.startswith("CPU")
    timed = timed[on_gpu] if on_gpu.any() else timed
    if timed["batch_sentences"].nunique() < 2:
        return NOT_MEASURED
    half = (timed["heads"] / timed["of"] - 0.5).abs()
    rows = timed[timed["run"] == timed.loc[half.idxmin(), "run"]].sort_values("batch_sentences")
    measured = rows[["ratio", "ratio_low", "ratio_high"]].to_numpy(float)
    smallest, *_, largest = [Finding(ratio, low=low, high=high) for ratio, low, high in measured]
    rounds = int(rows["repeats"].min())
    return replace(difference(largest, smallest), p_value=2 / comb(2 * rounds, rounds))


def _walk(frames: Frames, order: str, attention: str) -> pd.DataFrame:
    """The steps of one masking walk, compared with the model with all its heads."""
    rows = frames["masking_curve.tsv"]
    return with_unmasked(rows[(rows["order"] == order) & (rows["attention"] == attention)], ["order", "attention"])


def kept_at(walk: pd.DataFrame, masked: float) -> Finding:
    """Share of the score kept with the share `masked` of a walk's heads, interpolated between the nearest steps."""
    if not len(walk) or walk["unmasked"].iloc[0] <= 0:
        return NOT_MEASURED
    shares, kept = walk["share"].to_numpy(float), [walk[f"kept_percent{end}"] for end in ("", "_low", "_high")]
    ours, low, high = (float(np.interp(masked, shares, percent.to_numpy(float))) / 100 for percent in kept)
    return Finding(ours, low=low, high=high)


def difference(one: Finding, other: Finding) -> Finding:
    """One number minus another, with the outermost ends, as each of them has an interval of its own."""
    return Finding(one.ours - other.ours, low=one.low - other.high, high=one.high - other.low)


def share(count: int, of: int, chance: float = UNKNOWN) -> Finding:
    """A share and its exact 95 % interval (Clopper and Pearson 1934), treated as draws from many heads or layers."""
    from scipy.stats import binomtest

    if not of:
        return NOT_MEASURED
    low, high = binomtest(count, of).proportion_ci(CONFIDENCE)
    return Finding(count / of, low=float(low), high=float(high), chance=chance)


MICHEL_CLAIMS: dict[str, Callable[[Frames], Finding]] = {
    "heads_that_matter": heads_that_matter,
    "gains_among_them": gains_among_them,
    "layers_with_one_head": partial(layers_with_one_head, chosen=""),
    "layers_with_one_head_oracle": partial(layers_with_one_head, chosen="_oracle"),
    "free_share": free_share,
    "importance_over_ablation": importance_over_ablation,
    "source_collapses": partial(kept_of_kind, attention="dec_enc", masked=0.7),
    "encoder_keeps": partial(kept_of_kind, attention="enc_self", masked=0.8),
    "decoder_keeps": partial(kept_of_kind, attention="dec_self", masked=0.8),
    "source_needed_most": partial(source_needed_most, masked=0.8),
    "correlation_across_domains": correlation_across_domains,
    "kept_late": partial(kept_late, masked=0.4),
    "kept_at_the_end": partial(kept_at_the_end, masked=0.4),
    "kept_more_and_more": partial(kept_more_and_more, masked=0.4),
    "faster_in_larger_batches": faster_in_larger_batches,
}
"""By id in `michel_claims.csv`."""

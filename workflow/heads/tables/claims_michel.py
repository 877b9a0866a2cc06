"""What Michel et al. 2019 claim of translation models and of BERT, and a number for each claim from our own runs.

Every function is given the frames of one experiment and seed, by the names of their files; a file that is missing has
no rows, and then the claim is not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import comb, exp, lgamma, log, log1p

import numpy as np
import pandas as pd

from heads.base.names import ACCURACY, BLEU
from heads.tables.michel import LEAST, SIGNIFICANT, with_unmasked
from heads.tables.reading import Frames
from heads.tables.verdicts import NOT_MEASURED, UNKNOWN, Finding

NOTICEABLE = {BLEU: 0.25, ACCURACY: 1.0}
"""Points that may be lost unnoticed, by metric: our bounds, the paper gives none."""

EARLY_EPOCHS = 10
"""From here on the paper's model keeps 85 to 90 % of its BLEU with 40 % of its heads masked (Fig 5)."""

TAIL = 0.025
"""Outside each end of a 95 % interval."""

NORMAL = 1.959964
"""How many standard deviations from the mean of a normal distribution that is."""

PAPERS_ORDER = "example"


def heads_that_matter(frames: Frames) -> Finding:
    """Share of the encoder heads that lower the score significantly when masked alone.

    Not significant is not harmless: the upper end is of those, too, that lower it noticeably on too few sentences.
    """
    sure, possible, of = _losses(_encoder(frames), "")
    return replace(share(sure, of), high=share(possible, of).high)


def gains_among_them(frames: Frames) -> Finding:
    """Share of gains among those that change it significantly; chance: so many gains, were all of them false alarms."""
    encoder = _encoder(frames)
    significant = encoder[encoder["p_value"] < SIGNIFICANT]
    gains = int((significant["score_change"] > 0).sum())
    # p is two-sided, and a gain is a loss as large with both sides swapped: a false alarm is either one as often.
    return share(gains, len(significant), chance=tail(gains, len(encoder), SIGNIFICANT / 2))


def _encoder(frames: Frames) -> pd.DataFrame:
    heads = frames["ablation.tsv"]
    return heads[heads["attention"] == "enc_self"]


def layers_with_one_head(frames: Frames, chosen: str) -> Finding:
    """Share of the layers that lose nothing significant when cut to one head; chosen: "" on dev, "_oracle" on test.

    The lower end is without those that lose something noticeable on too few sentences. These are all the layers that
    there are, not draws from many: which of them lose is all that is unsure.
    """
    sure, possible, of = _losses(frames["layers_to_one.tsv"], chosen)
    return Finding(1 - sure / of, low=1 - possible / of, high=1 - sure / of) if of else NOT_MEASURED


def _losses(rows: pd.DataFrame, suffix: str) -> tuple[int, int, int]:
    """How many rows lose significantly, how many lose so or noticeably, and how many there are."""
    change = rows[f"score_change{suffix}"]
    sure = (rows[f"p_value{suffix}"] < SIGNIFICANT) & (change < 0)
    return int(sure.sum()), int((sure | (change < -rows["metric"].map(NOTICEABLE))).sum()), len(rows)


def free_share(frames: Frames) -> Finding:
    """The share of all heads that are masked by importance where the score first falls noticeably, between two steps.

    Its ends are where the ends of the interval of the change do.
    """
    walk = _walk(frames, PAPERS_ORDER, "all")
    if walk.empty:
        return NOT_MEASURED
    noticeable = NOTICEABLE[walk["metric"].iloc[0]]
    ends = [
        _crossing(walk["share"], walk[column], noticeable)
        for column in ("score_change", "score_change_low", "score_change_high")
    ]
    return Finding(ends[0], low=ends[1], high=ends[2])


def _crossing(shares: pd.Series, change: pd.Series, noticeable: float) -> float:
    """Where the line through the changes first falls by more than what is noticeable; 1 if it never does."""
    points = list(zip(shares, change, strict=True))
    for (before, kept), (after, lost) in pairwise(points):
        if lost < -noticeable:
            return float(before + (after - before) * (kept + noticeable) / (kept - lost))
    return 1.0


def importance_over_ablation(frames: Frames) -> Finding:
    """The score by the paper's importance minus that by single heads masked on dev, a mean over the steps between none
    and all heads; so are the ends, which encloses the mean at least as often as each of them."""
    walk = _walk(frames, "ablation", "all")
    between = walk[(walk["share"] > 0) & (walk["share"] < 1)]
    ours, low, high = (float(between[f"score_behind{end}"].mean()) for end in ("", "_low", "_high"))
    full = between["unmasked"].where(between["unmasked"] > 0).max()
    return Finding(ours, low=low, high=high, relative=100 * ours / float(full))


def kept_of_kind(frames: Frames, attention: str, masked: float) -> Finding:
    """Share of the score kept with so large a share of the heads of one kind masked by importance."""
    return kept_at(_walk(frames, PAPERS_ORDER, attention), masked)


def source_needed_most(frames: Frames, masked: float) -> Finding:
    """Share of the score kept where either kind of self-attention is masked, the lower of both, minus that where
    cross-attention is; not measured where a model lacks one of the three kinds."""
    source = kept_of_kind(frames, "dec_enc", masked)
    own = [difference(kept_of_kind(frames, kind, masked), source) for kind in ("enc_self", "dec_self")]
    return NOT_MEASURED if any(np.isnan(found.ours) for found in own) else min(own, key=lambda found: found.ours)


def correlation_across_domains(frames: Frames) -> Finding:
    """Pearson's r over all heads of the change on test and on the other domain, with Fisher's interval."""
    keys = ["attention", "layer", "head"]
    both = frames["ablation.tsv"].merge(frames["ablation.out_of_domain.tsv"], on=keys, suffixes=("", "_other"))
    if len(both) <= 3:
        return NOT_MEASURED
    r = float(both["score_change"].corr(both["score_change_other"]))
    with np.errstate(divide="ignore"):
        low, high = np.tanh(np.arctanh(r) + np.array([-1, 1]) * NORMAL / (len(both) - 3) ** 0.5)
    return Finding(r, low=float(low), high=float(high))


def kept_late(frames: Frames, masked: float) -> Finding:
    """Share of the score kept with so many heads masked by importance: the least of checkpoints from epoch 10 on."""
    late = [part for part in _checkpoints(frames) if part["epoch"].iloc[0] >= EARLY_EPOCHS]
    return min((kept_at(part, masked) for part in late), key=lambda found: found.ours, default=NOT_MEASURED)


def kept_at_the_end(frames: Frames, masked: float) -> Finding:
    """The same of the finished model, whatever its epoch."""
    return next((kept_at(part, masked) for part in _checkpoints(frames) if part["finished"].iloc[0]), NOT_MEASURED)


def kept_more_and_more(frames: Frames, masked: float) -> Finding:
    """Share kept by the finished model minus that kept at the first checkpoint that translates anything."""
    checkpoints = _checkpoints(frames)
    return (
        difference(kept_at_the_end(frames, masked), kept_at(checkpoints[0], masked))
        if len(checkpoints) > 1
        else NOT_MEASURED
    )


def _checkpoints(frames: Frames) -> list[pd.DataFrame]:
    """The walks at each checkpoint that has a score to lose, in the order of training, the finished model last."""
    rows = with_unmasked(frames["checkpoints.tsv"], ["finished", "update"])
    return [part for _, part in rows[rows["unmasked"] >= LEAST].groupby(["finished", "update"])]


def faster_in_larger_batches(frames: Frames) -> Finding:
    """Speed by that of the unpruned model in the largest batches minus the same in the smallest, of the model nearest
    to half of the heads; on a GPU where one was timed.

    Its ends are those of both ratios over rounds (`heads.analysis.speed`), the farthest apart. p_value: how often so
    many rounds of one speed lie apart like that, one way or the other; of three rounds and less that says nothing.
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
    """The steps of one walk, set against the model with all its heads."""
    rows = frames["masking_curve.tsv"]
    return with_unmasked(rows[(rows["order"] == order) & (rows["attention"] == attention)], ["order", "attention"])


def kept_at(walk: pd.DataFrame, masked: float) -> Finding:
    """Share of the score kept with a share of the heads of a walk masked, on the line between the two nearest steps."""
    if not len(walk) or walk["unmasked"].iloc[0] <= 0:
        return NOT_MEASURED
    ours, low, high = (
        float(np.interp(masked, walk["share"].to_numpy(float), walk[column].to_numpy(float))) / 100
        for column in ("kept_percent", "kept_percent_low", "kept_percent_high")
    )
    return Finding(ours, low=low, high=high)


def difference(one: Finding, other: Finding) -> Finding:
    """One number minus another; as both intervals are of their own, the ends that lie farthest apart."""
    return Finding(one.ours - other.ours, low=one.low - other.high, high=one.high - other.low)


def share(count: int, of: int, chance: float = UNKNOWN) -> Finding:
    """A share and its exact 95 % interval (Clopper and Pearson 1934), as of draws from many heads or layers."""
    if not of:
        return NOT_MEASURED
    low = _solved(lambda p: tail(count, of, p)) if count else 0.0
    high = 1 - _solved(lambda p: tail(of - count, of, p)) if count < of else 1.0
    return Finding(count / of, low=low, high=high, chance=chance)


def tail(count: int, of: int, p: float) -> float:
    """The probability of at least `count` successes in `of` draws, each with probability p."""
    # By logarithms: of thousands of test sentences the number of ways is no float any more.
    ways = (lgamma(of + 1) - lgamma(k + 1) - lgamma(of - k + 1) for k in range(count, of + 1))
    return sum(exp(log_ways + k * log(p) + (of - k) * log1p(-p)) for k, log_ways in enumerate(ways, count))


def _solved(rising: Callable[[float], float]) -> float:
    """The p between 0 and 1 at which a rising function has the probability outside one end of the interval."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < TAIL else (low, middle)
    return (low + high) / 2


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

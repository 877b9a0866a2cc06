"""Alignment heads: agreement of the word alignment made by a cross-attention head with a given one.

No torch. The decoder reads the reference. A head aligns each target word with the source word that it attends to most:
attention between subwords is summed over a source word's subwords and averaged over a target word's
(`heads.syntax.alignment`). The source's EOS is not a word; a target word whose weight is all on EOS gets no link.

The literature has two conventions for the decoder step that represents a target subword (Chen et al. 2020, Accurate
Word Alignment Induction from Neural Machine Translation, secs 2 and 3), and both are measured:

- output: the step that outputs the subword; its query comes from the previous subword. The usual choice.
- input: the next step, which reads the subword. It knows the word to be aligned, and often aligns better.

All given links are sure ones. With links A of the head and given links S, the alignment error rate (Och and Ney 2003,
sec. 4) is then 1 - 2 |A and S| / (|A| + |S|), or 1 - F1; precision is |A and S| / |A|, recall |A and S| / |S|. The
baseline is the best fixed offset: source word j + k for target word j, where it exists, with the k that has the lowest
error on the same pairs. A head can hardly reach 0: it gives each target word one link, not none or two.

Intervals are by bootstrap over pairs (`heads.base.bootstrap`), with the best offset recomputed in every draw. A head
`aligns` if the interval supports that its error is below the best offset's by at least the margin, as for syntactic
roles.

N heads, I source and J target words, T steps, S pairs, K offsets, B draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heads.analysis.roles import NOWHERE, ROUNDING, Floats, Whole, pointed
from heads.base.bootstrap import interval, resampled_sums
from heads.config.analyses import AlignmentHeadsSettings
from heads.syntax.alignment import Words, on_words

COLUMNS = (
    "step",
    "layer",
    "head",
    "aer",
    "aer_low",
    "aer_high",
    "precision",
    "recall",
    "offset",
    "offset_aer",
    "gain",
    "gain_low",
    "gain_high",
    "links",
    "target_words",
    "pairs",
    "aligns",
)
STEPS: Mapping[str, slice] = {"output": slice(None, -1), "input": slice(1, None)}
"""Which of the T+1 steps represent the T subwords of a target sentence."""

Row = dict[str, str | int | float | None]


@dataclass(frozen=True, slots=True)
class Gold:
    """A sentence pair in words and subwords, with its word alignment [I, J]."""

    source: Words
    target: Words
    linked: NDArray[np.bool_]


def aligned(weights: NDArray[np.floating], gold: Gold, step: str) -> Whole:
    """The source word aligned with each target word [N, J], by weights [N, T+1, S] between subwords; -1 for none."""
    return pointed(on_words(weights[:, STEPS[step]], gold.target.membership, gold.source.membership))


def agreement(targets: Whole, linked: NDArray[np.bool_]) -> tuple[Whole, Whole]:
    """Number of links of the alignment [I, J] that each head finds, and number that it makes, [N] each."""
    made = targets != NOWHERE
    return (linked[targets, np.arange(linked.shape[1])] & made).sum(1), made.sum(1)


def offset_links(linked: NDArray[np.bool_]) -> dict[int, tuple[int, int]]:
    """Number of links that each offset finds and makes in a pair with links [I, J]; other offsets find none."""
    found = Counter((np.subtract(*np.nonzero(linked))).tolist())
    return {offset: (hits, made_at(offset, *linked.shape)) for offset, hits in found.items()}


def made_at(offset: int, source: int, target: int) -> int:
    """Number of links that an offset makes between the given numbers of source and target words."""
    return max(0, min(target, source - offset) - max(0, -offset))


def error_rate(hits: Floats, made: Floats, sure: Floats) -> Floats:
    """Alignment error rate if all links are sure; NaN where there are no links."""
    return 1 - _shares(2 * hits, made + sure)


def _shares(some: Floats, of: Floats) -> Floats:
    return np.asarray(np.divide(some, of, out=np.full(np.shape(some), np.nan), where=of > 0))


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts for each pair: links found and made by heads [S, N] and by offsets [S, K], and given links [S]."""

    hits: NDArray[np.float32]
    made: NDArray[np.float32]
    offset_hits: NDArray[np.float32]
    offset_made: NDArray[np.float32]
    sure: NDArray[np.float32]

    def sampled(self, draws: int) -> list[Floats]:
        """Sums over all pairs, then over the pairs of each draw, in the order of the fields."""
        parts = [self.hits, self.made, self.offset_hits, self.offset_made, self.sure[:, None]]
        columns = np.concatenate(parts, 1)
        sums = np.concatenate([columns.sum(0, dtype=np.float64)[None], resampled_sums(columns, draws)])
        return np.split(sums, np.cumsum([part.shape[1] for part in parts[:-1]]), 1)


def alignment_heads(
    attended: Iterable[tuple[int, NDArray[np.floating]]],
    golds: Sequence[Gold],
    heads: Sequence[tuple[int, int]],
    settings: AlignmentHeadsSettings,
) -> list[Row]:
    """One row as in COLUMNS for each head and each of the settings' steps; no rows for a model without such heads.

    attended: numbers of pairs in `golds` with weights [N, T+1, S] between their subwords. heads: layer and original
    number, in the order of the weights.
    """
    if not heads:
        return []
    numbers, found = [], []
    for number, weights in attended:
        numbers.append(number)
        gold = golds[number]
        found.append(np.array([agreement(aligned(weights, gold, step), gold.linked) for step in settings.steps]))
    by_step = np.array(found, np.float32).reshape(len(found), len(settings.steps), 2, len(heads))
    linked = [golds[number].linked for number in numbers]
    offsets = sorted(set().union(*map(offset_links, linked)))
    by_offset = _by_offset(linked, offsets)
    sure = np.array([links.sum() for links in linked], np.float32)
    rows: list[Row] = []
    for place, step in enumerate(settings.steps):
        counts = Counts(by_step[:, place, 0], by_step[:, place, 1], by_offset[:, 0], by_offset[:, 1], sure)
        facts = sum(links.shape[1] for links in linked), len(linked)
        for head, (*measured, aligns) in zip(heads, _measured(counts, offsets, settings), strict=True):
            rows.append(dict(zip(COLUMNS, (step, *head, *measured, *facts, aligns), strict=True)))
    return rows


def _by_offset(linked: Sequence[NDArray[np.bool_]], offsets: Sequence[int]) -> NDArray[np.float32]:
    """Links found and made by each offset, [S, 2, K]; an offset also makes links in pairs where it finds none."""
    counts = np.zeros((len(linked), 2, len(offsets)), np.float32)
    for row, links in zip(counts, linked, strict=True):
        known = offset_links(links)
        for column, offset in enumerate(offsets):
            row[:, column] = known.get(offset, (0, made_at(offset, *links.shape)))
    return counts


def _measured(
    counts: Counts, offsets: Sequence[int], settings: AlignmentHeadsSettings
) -> list[list[float | int | None]]:
    """For each head, the values of COLUMNS from `aer` to `links`, and whether it aligns."""
    hits, made, offset_hits, offset_made, sure = counts.sampled(settings.bootstrap)
    rates = error_rate(hits, made, np.broadcast_to(sure, made.shape))
    by_offset = error_rate(offset_hits, offset_made, np.broadcast_to(sure, offset_made.shape))
    best = np.nanmin(by_offset, 1, initial=1.0, keepdims=True) if offsets else np.full_like(sure, np.nan)
    gain = best - rates
    low, high = interval(rates[1:])
    gain_low, gain_high = interval(gain[1:])
    offset = offsets[int(by_offset[0].argmin())] if offsets else None
    precision, recall = _shares(hits[0], made[0]), _shares(hits[0], np.broadcast_to(sure[0], hits[0].shape))
    aligns = gain_low - settings.margin >= -ROUNDING
    columns = (rates[0], low, high, precision, recall)
    beside = (gain[0], gain_low, gain_high)
    return [
        [
            *_cells(column[head] for column in columns),
            offset,
            *_cells([best[0, 0]]),
            *_cells(column[head] for column in beside),
            int(sure[0, 0]),
            int(aligns[head]),
        ]
        for head in range(hits.shape[1])
    ]


def _cells(values: Iterable[float]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]

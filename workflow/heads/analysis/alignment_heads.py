"""Alignment heads: agreement of the word alignment made by a cross-attention head with a given one.

No torch. The decoder reads the reference. A head aligns each target word with the source word that it attends to most:
attention between subwords is summed over a source word's subwords and averaged over a target word's
(`heads.syntax.words`). The source's EOS is not a word; a target word whose weight is all on EOS gets no link.

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

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heads.analysis.roles import NOWHERE, Floats, Whole, pointed, sampled, shares
from heads.base.bootstrap import ROUNDING, interval
from heads.base.columns import ALIGNMENT_COLUMNS
from heads.base.files import UserError
from heads.config.analyses import AlignmentHeadsSettings
from heads.syntax.pharaoh import AlignedPair, Lines
from heads.syntax.words import Words, on_words, usable_pairs, words_of
from heads.text.vocabulary import Vocabulary

STEPS: Mapping[str, slice] = {"output": slice(None, -1), "input": slice(1, None)}
"""Which of the T+1 steps represent the T subwords of a target sentence."""

Row = dict[str, str | int | float | None]


@dataclass(frozen=True, slots=True)
class Gold:
    """A sentence pair in words and subwords, with its word alignment [I, J]."""

    source: Words
    target: Words
    linked: NDArray[np.bool_]


def golds_of(
    pairs: Sequence[AlignedPair], vocabularies: Sequence[Vocabulary], settings: AlignmentHeadsSettings, name: str
) -> list[Gold]:
    """The first `settings.sentences` pairs in subwords of both vocabularies, without those that cannot be measured.

    Pairs left out are reported on standard error, with the `name` of the alignment. Raises UserError if no link is
    left.
    """
    taken = pairs[: settings.sentences or None]
    sources = words_of((pair.source for pair in taken), vocabularies[0])
    targets = words_of((pair.target for pair in taken), vocabularies[1])
    sides = list(zip(sources, targets, strict=True))
    kept = usable_pairs(sides, settings.max_subwords)
    reasons = (
        f"a source of one word, more than {settings.max_subwords} subwords on a side, or words that subwords do not "
        "cover exactly"
    )
    if not any(taken[number].links for number in kept):
        raise UserError(
            f"{name}: none of its {len(taken)} pairs has links and can be measured ({reasons} exclude a pair): "
            "give an alignment of this text."
        )
    if len(kept) != len(taken):
        print(f"{name}: {len(kept)} of {len(taken)} pairs measured; the others have {reasons}", file=sys.stderr)
    golds = []
    for number in kept:
        source, target = sides[number]
        linked = np.zeros((len(source), len(target)), bool)
        for link in taken[number].links:
            linked[link] = True
        golds.append(Gold(source, target, linked))
    return golds


def unlinked(
    texts: Sequence[Lines], vocabularies: Sequence[Vocabulary], settings: AlignmentHeadsSettings
) -> list[Gold]:
    """The first pairs of a text in subwords, without links; pairs with an empty or too long side are left out.

    Raises UserError if no pair is left.
    """
    encoded = [
        vocabulary.encode(text.lines[: settings.sentences or None])
        for text, vocabulary in zip(texts, vocabularies, strict=True)
    ]
    pairs = [
        Gold(_unparsed(number, source), _unparsed(number, target), np.zeros((0, 0), bool))
        for number, (source, target) in enumerate(zip(*encoded, strict=True))
        if all(0 < len(ids) <= settings.max_subwords for ids in (source, target))
    ]
    if not pairs:
        raise UserError(
            f"{texts[0].name} has no sentence of at most {settings.max_subwords} subwords: raise max_subwords."
        )
    return pairs


def _unparsed(number: int, ids: Sequence[int]) -> Words:
    """A sentence in subwords, with no known words."""
    return Words(number, (), (), np.array(ids, np.int32), np.zeros((0, len(ids))))


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
    return 1 - shares(2 * hits, made + sure)


def alignment_heads(
    attended: Iterable[tuple[int, NDArray[np.floating]]],
    golds: Sequence[Gold],
    heads: Sequence[tuple[int, int]],
    settings: AlignmentHeadsSettings,
) -> list[Row]:
    """One row as in ALIGNMENT_COLUMNS for each head and each of the settings' steps; none if a model has no such heads.

    attended: numbers of pairs in `golds` with weights [N, T+1, S] between their subwords. heads: layer and original
    number, in the order of the weights.
    """
    if not heads:
        return []
    numbers, found = [], []
    for number, weights in attended:
        numbers.append(number)
        gold = golds[number]
        found.append([agreement(aligned(weights, gold, step), gold.linked) for step in settings.steps])
    by_step = np.array(found, float).reshape(len(found), len(settings.steps), 2, len(heads))
    linked = [golds[number].linked for number in numbers]
    facts = sum(links.shape[1] for links in linked), len(linked)
    rows: list[Row] = []
    for place, step in enumerate(settings.steps):
        measured = _measured(by_step[:, place], linked, settings)
        for head, (*values, aligns) in zip(heads, measured, strict=True):
            rows.append(dict(zip(ALIGNMENT_COLUMNS, (step, *head, *values, *facts, aligns), strict=True)))
    return rows


def _by_offset(linked: Sequence[NDArray[np.bool_]], offsets: Sequence[int]) -> Floats:
    """Links found and made by each offset, [S, 2, K]; an offset also makes links in pairs where it finds none."""
    known = [offset_links(links) for links in linked]
    counts = [
        [one.get(offset, (0, made_at(offset, *links.shape))) for offset in offsets]
        for one, links in zip(known, linked, strict=True)
    ]
    return np.array(counts, float).reshape(len(linked), len(offsets), 2).swapaxes(1, 2)


def _measured(
    by_head: Floats, linked: Sequence[NDArray[np.bool_]], settings: AlignmentHeadsSettings
) -> Iterator[list[float | int | None]]:
    """For each head, the values of ALIGNMENT_COLUMNS from `aer` to `links`, and whether it aligns.

    by_head: links found and made in each pair [S, 2, N]. linked: the given links of each pair.
    """
    offsets = sorted(set().union(*map(offset_links, linked)))
    given = np.array([links.sum() for links in linked], float)[:, None]
    heads, offset_counts, sure = sampled([by_head, _by_offset(linked, offsets), given], settings.bootstrap)
    (hits, made), by_offset = heads.swapaxes(0, 1), error_rate(offset_counts[:, 0], offset_counts[:, 1], sure)
    rates = error_rate(hits, made, sure)
    best = np.nanmin(by_offset, 1, initial=1.0, keepdims=True) if offsets else np.full_like(sure, np.nan)
    offset = offsets[int(by_offset[0].argmin())] if offsets else None
    gain = best - rates
    (low, high), (gain_low, gain_high) = interval(rates[1:]), interval(gain[1:])
    own = (rates[0], low, high, shares(hits[0], made[0]), shares(hits[0], sure[0]))
    for head in range(len(rates[0])):
        against = (best[0, 0], *(column[head] for column in (gain[0], gain_low, gain_high)))
        aligns = int(gain_low[head] - settings.margin >= -ROUNDING)
        yield [*_cells(column[head] for column in own), offset, *_cells(against), int(sure[0, 0]), aligns]


def _cells(values: Iterable[float]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]

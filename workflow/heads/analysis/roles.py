"""Roles of encoder heads: positional, syntactic, rare words (Voita et al. 2019, sec. 5). No torch.

Each measure is the share of cases in which a head's largest weight is where the role wants it. EOS is neither a case
nor a possible target: an offset of +1 has no case at the last subword. Positional and rare-word measures are between
subwords, which the model reads and the paper calls tokens; syntactic ones are between surface words, which the trees
describe (`heads.syntax.words` says how subwords become words).

- positional: at one fixed offset. Subwords for which the offset lies outside the sentence are not cases.
  Offset 0, a head that looks at the subword itself, is a fixed offset too.
- positional_words: the same between words, for comparison; it never gives a role. In a word of several subwords, a
  head that always looks at the next subword looks mostly at the same word.
- syntactic: at the word's partner in a relation; every arc is a case. The baseline is the best fixed offset
  on the same cases. A name in `relations` stands for the relation with all its subtypes
  (`nsubj` with `nsubj:pass`) or, if it contains a colon, for that subtype alone.
- rare: at the rarest subword, in sentences whose rarest subword is not among the `rare_outside_top` most
  frequent ones of the training source. Occurrences of one subword count as one: "one of two rarest" means the
  two rarest distinct subwords, and sentences without a third are left out. This row decides on the role; the
  row of the rarest alone is for information. The unknown subword never counts as rare: it stands for all that the
  vocabulary lacks, and hardly occurs in the training source, all of whose characters are in the vocabulary.

Every accuracy has a 95 % interval by bootstrap over sentences (`heads.base.bootstrap`). The paper judges by accuracy
alone: `reaches` says whether it is at least the threshold. The role itself, `holds`, is given if the interval supports
that claim, by one rule for all roles: the lower end of the interval of accuracy minus threshold, `excess_low`, is not
below zero. For syntactic roles the threshold depends on the baseline, which is recomputed in every draw; the best of
many offsets in a draw tends to be too good rather than too bad, so the rule is on the safe side. `excess_high`, the
upper end, separates a head that surely lacks a role from one that may have it. With the paper's 50 thousand sentences,
intervals are narrow and both verdicts nearly the same; with a few hundred cases, a syntactic head must be some points
above the margin.

The weights of a head with biases of distances (Raffel et al. 2020), which depend on where a key stands and on nothing
else, can be taken apart, which the paper's models do not allow: `by_bias` is the accuracy of the biases alone, products
being zero, and `by_content` that of the products alone. As the largest of biases is in one place however little it
exceeds the others, `bias_weight` has the mean weight that they put there. Of equal weights the first counts.

A measure without cases has no accuracy; with fewer than `min_cases` it has one, but gives no head the role: a bootstrap
of a handful of cases underestimates its own uncertainty.

N heads, W words, P subwords, S sentences, M measures, R relations, 2R with their directions, B draws of sentences.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from heads.base.bootstrap import ROUNDING, interval, resampled_sums
from heads.base.columns import POSITION_COLUMNS, ROLE_COLUMNS
from heads.base.names import HALVES
from heads.config.analyses import RolesSettings
from heads.syntax.words import Arc, SentenceAttention, Words, on_words
from heads.text.special_ids import UNK

OFFSETS = (-2, -1, 0, 1, 2)
POSITIONAL = ("positional", "positional_words")
"""Between subwords, which gives the role, and between words, which does not."""
DIRECTIONS = ("dependent-to-head", "head-to-dependent")
RAREST = ("rarest", "one of two rarest")
FIRST_RELATION = len(POSITIONAL) * len(OFFSETS)
"""The index of the first syntactic measure; those of rare words come last."""

NOWHERE = -1
SLICE = 1 << 20
"""Number of subwords counted at once: numpy copies its input to wider integers."""

Row = dict[str, str | int | float | None]
Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Hits = tuple[Whole, Whole]
"""Hits [N, M] and cases [M] of some measures."""
Offsets = Counter[tuple[int, int]]
"""Number of dependents whose head is at an offset, by index of relation [R] and offset."""


def pointed(weights: NDArray[np.floating]) -> Whole:
    """The key with the largest weight for each query [N, Q], by weights [N, Q, K]; -1 where all are zero."""
    return np.where(weights.max(-1) > 0, weights.argmax(-1), NOWHERE)


def positional(targets: Whole) -> Hits:
    """Hits and cases of each of OFFSETS, for targets [N, P] of subwords or [N, W] of words."""
    own = np.arange(targets.shape[1])[:, None]
    wanted = own + np.array(OFFSETS)
    inside = (wanted >= 0) & (wanted < len(own))
    return ((targets[:, :, None] == wanted) & inside).sum(1), inside.sum(0)


def put(weights: NDArray[np.floating]) -> Floats:
    """The sum over all queries of the weight at each of OFFSETS [N, O], for weights [N, P, P] between subwords."""
    return np.stack([np.trace(weights, offset, 1, 2, dtype=np.float64) for offset in OFFSETS], -1)


def partners_of(arcs: Iterable[Arc], words: int, relations: Sequence[str]) -> NDArray[np.bool_]:
    """[2R, W, W], whether a word has another as its partner in each relation and direction."""
    partners = np.zeros((len(relations), len(DIRECTIONS), words, words), bool)
    for arc in arcs:
        for index, relation in enumerate(relations):
            if relation in (arc.relation, arc.relation.partition(":")[0]):
                partners[index, 0, arc.dependent, arc.head] = True
                partners[index, 1, arc.head, arc.dependent] = True
    return partners.reshape(-1, words, words)


def syntactic(targets: Whole, partners: NDArray[np.bool_]) -> Hits:
    """Hits and cases of each relation and direction, for targets [N, W] and partners [2R, W, W]; a case is an arc.

    A word with two dependents of a relation is two cases, of which its one target hits at most one: the paper's
    positional baselines are the same in both directions, which would not be so if words were counted.
    """
    hit = partners[:, np.arange(targets.shape[1]), targets] & (targets != NOWHERE)
    return hit.sum(-1).T, partners.sum((-1, -2))


def offsets_of(partners: NDArray[np.bool_]) -> Offsets:
    """Offsets of the partners [2R, W, W] of one sentence, seen from the dependents.

    Seen from the heads, their signs are reversed, so that the best one is as good.
    """
    found = np.argwhere(partners[:: len(DIRECTIONS)])
    return Counter((relation, key - query) for relation, query, key in found.tolist())


def positions(sentences: Iterable[Words], relations: Sequence[str]) -> list[Row]:
    """Number of dependents of each relation at each position relative to the head; -1 is the word before it.

    Rows of POSITION_COLUMNS; the largest share of a relation is the baseline of both its directions.
    """
    found = sum((offsets_of(partners_of(words.arcs, len(words), relations)) for words in sentences), Offsets())
    places = sorted((relation, -offset) for relation, offset in found)
    return [
        dict(zip(POSITION_COLUMNS, (relations[relation], position, found[relation, -position]), strict=True))
        for relation, position in places
    ]


def frequency_ranks(ids: NDArray[np.integer], subwords: int) -> Whole:
    """Rank of each of `subwords` subwords by its count in `ids`: 0 is the most frequent; the lower id wins ties."""
    counts = np.zeros(subwords, np.int64)
    for start in range(0, len(ids), SLICE):
        counts += np.bincount(ids[start : start + SLICE], minlength=subwords)
    order = np.argsort(-counts, kind="stable")
    return np.argsort(order, kind="stable")


def rare(targets: Whole, ranks: Whole, outside_top: int) -> Hits:
    """Hits and cases of the rarest subword and of the two rarest, for targets [N, P] and ranks [P].

    A subword of rank NOWHERE is never rare.
    """
    different = np.unique(ranks)
    if different[-1] < outside_top or len(different) <= len(RAREST):
        return np.zeros((len(targets), len(RAREST)), np.int64), np.zeros(len(RAREST), np.int64)
    rank = np.where(targets == NOWHERE, NOWHERE, ranks[targets])
    hits = np.stack([rank == different[-1], rank >= different[-2]], -1).sum(1)
    return hits, np.full(len(RAREST), len(ranks))


def sampled(parts: Sequence[NDArray[np.floating]], draws: int) -> list[Floats]:
    """Sums [1+B, ...] of each of several counts [S, ...]: over all sentences, then over the sentences of each draw."""
    sizes = [math.prod(part.shape[1:]) for part in parts]
    columns = np.concatenate([part.reshape(len(part), size) for part, size in zip(parts, sizes, strict=True)], 1)
    columns = columns.astype(np.float32)
    sums = np.concatenate([columns.sum(0, dtype=np.float64)[None], resampled_sums(columns, draws)])
    split = zip(parts, np.split(sums, np.cumsum(sizes[:-1]), 1), strict=True)
    return [found.reshape(len(sums), *part.shape[1:]) for part, found in split]


def shares(some: Floats, of: Floats) -> Floats:
    """The quotient of counts that may have axes of size one; NaN where there are none."""
    return np.asarray(np.divide(some, of, out=np.full(np.broadcast(some, of).shape, np.nan), where=of > 0))


def count(
    attended: Iterable[SentenceAttention], heads: int, ranks: Whole, relations: Sequence[str], rare_outside_top: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], Whole, Floats]:
    """Counts for each sentence, in the order in which they come, what the last of them are of, and a sum.

    These are hits [S, N, M], cases [S, M] and dependents at each offset in a relation [S, K]; then these relations [K],
    and the weights at all cases of each of OFFSETS [N, O].
    """
    size = len(role_names(relations))
    hits, cases, offsets = [], [], []
    weight = np.zeros((heads, len(OFFSETS)))
    known = np.where(np.arange(len(ranks)) == UNK, NOWHERE, ranks)
    for words, weights in attended:
        of_subwords, of_words = pointed(weights), pointed(on_words(weights, words.membership))
        partners = partners_of(words.arcs, len(words), relations)
        parts = [positional(of_subwords), positional(of_words), syntactic(of_words, partners)]
        parts.append(rare(of_subwords, known[words.subwords], rare_outside_top))
        hits.append(np.concatenate([part[0] for part in parts], 1).astype(np.float32))
        cases.append(np.concatenate([part[1] for part in parts]))
        offsets.append(offsets_of(partners))
        weight += put(weights)
    columns = sorted(set().union(*offsets))
    return (
        np.array(hits, np.float32).reshape(len(hits), heads, size),
        np.array(cases, np.float32).reshape(len(cases), size),
        np.array([[one[key] for key in columns] for one in offsets], np.float32).reshape(len(offsets), len(columns)),
        np.array([relation for relation, _ in columns], np.int64),
        weight,
    )


def role_names(relations: Sequence[str]) -> list[tuple[str, str]]:
    """Role and name of each of the M measures, in the order of a head's rows."""
    offsets = [(role, f"{offset:+d}" if offset else "0") for role in POSITIONAL for offset in OFFSETS]
    arcs = [("syntactic", f"{relation} {way}") for relation in relations for way in DIRECTIONS]
    return [*offsets, *arcs, *(("rare", name) for name in RAREST)]


def _baselines(cases: Floats, offsets: Floats, relation_of: Whole, relations: int) -> Floats:
    """[1+B, M], the share of arcs at the best fixed offset; NaN without arcs, and for other measures."""
    found = np.full(cases.shape, np.nan)
    for relation in range(relations):
        best = offsets[:, relation_of == relation].max(1, initial=0)
        both = slice(*(FIRST_RELATION + len(DIRECTIONS) * np.array([relation, relation + 1])))
        found[:, both] = shares(best[:, None], cases[:, both])
    return found


def _thresholds(baselines: Floats, settings: RolesSettings) -> Floats:
    """[1+B, M], the lowest accuracy that gives a head the role (or would, between words); NaN if nothing does."""
    margin = settings.syntactic_margin
    found = baselines * (1 + margin) if settings.margin_is_relative else baselines + margin
    found[:, :FIRST_RELATION] = settings.positional_share
    found[:, -1] = settings.rare_share
    return found


def known(share: float) -> float | None:
    """The share, or None for NaN."""
    return None if np.isnan(share) else float(share)


def halves(hits: NDArray[np.float32], cases: NDArray[np.float32], weight: Floats) -> Floats:
    """`by_bias`, `by_content` and `bias_weight` of each head and measure [3, N, M]; NaN for weights of no offset.

    hits: [S, 3N, M] by all weights, by biases and by products. cases: [S, M]. weight: [3N, O], from `count`.
    """
    counted = cases.sum(0, dtype=np.float64)
    _, by_bias, by_content = np.split(shares(hits.sum(0, dtype=np.float64), counted), 3)
    found = np.full_like(by_bias, np.nan)
    found[:, : len(OFFSETS)] = shares(np.split(weight, 3)[1], counted[: len(OFFSETS)])
    return np.stack([by_bias, by_content, found])


def roles(
    attended: Iterable[SentenceAttention],
    heads: Sequence[tuple[int, int]],
    ranks: Whole,
    settings: RolesSettings,
    *,
    apart: bool = False,
) -> list[Row]:
    """One row as in ROLE_COLUMNS for each head and measure.

    heads: (layer, original number) in the order of the weights. ranks: of all subwords of the source vocabulary, from
    `frequency_ranks`. apart: whether weights come with those by biases alone and by products alone, as `attend` has
    them. A model without heads has no rows.
    """
    if not heads:
        return []
    maps = len(heads) * (3 if apart else 1)
    *counts, relation_of, weight = count(attended, maps, ranks, settings.relations, settings.rare_outside_top)
    alone = halves(counts[0], counts[1], weight) if apart else None
    counts[0] = counts[0][:, : len(heads)]
    hits, cases, offsets = sampled(counts, settings.bootstrap)
    accuracy = shares(hits, cases[:, None])
    baselines = _baselines(cases, offsets, relation_of, len(settings.relations))
    excess = accuracy - _thresholds(baselines, settings)[:, None]
    low, high = interval(accuracy[1:])
    excess_low, excess_high = interval(excess[1:])
    names = role_names(settings.relations)
    reaches = (excess[0] >= -ROUNDING) & np.array([role != POSITIONAL[1] for role, _ in names])
    holds = reaches & (excess_low >= -ROUNDING) & (cases[0] >= settings.min_cases)
    rows = []
    for number, head in enumerate(heads):
        for measure, (role, name) in enumerate(names):
            at = number, measure
            found = [accuracy[0][at], low[at], high[at], baselines[0, measure], excess_low[at], excess_high[at]]
            facts = (*head, role, name, *map(known, found), int(cases[0, measure]), int(reaches[at]), int(holds[at]))
            by_halves = (None,) * len(HALVES) if alone is None else map(known, alone[:, number, measure])
            rows.append(dict(zip(ROLE_COLUMNS, (*facts, *by_halves), strict=True)))
    return rows

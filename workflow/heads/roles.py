"""Roles of encoder heads: positional, syntactic, rare words (Voita et al. 2019, sec. 5). No torch.

Each measure is the share of cases in which a head's largest weight falls where the role wants it. The end
sign is neither a case nor a place to point at. Positional and syntactic are measured between surface words
(the paper speaks of tokens; `heads.words` says how pieces become words), rare words between pieces, whose
frequencies are known.

- positional: at one fixed offset. Words for which the offset lies outside the sentence are no cases of it.
  Offset 0, a head that looks at the word itself, is a fixed offset too.
- syntactic: at the word's partner in a relation; every arc is a case. The baseline is the best that one
  fixed offset could do on the same cases. A name in `relations` stands for the relation with all its
  subtypes (`nsubj` with `nsubj:pass`) or, when it holds a colon, for that subtype alone.
- rare: at the rarest piece, in sentences whose rarest piece is not among the most frequent
  `rare_outside_top` of the training source. Occurrences of one piece are one: "one of two rarest" means the
  two rarest different pieces, and sentences without a third are left out. This row decides on the role, the
  row of the rarest alone is there to be read.

A measure without cases has no accuracy; with fewer than `min_cases` it has one, but gives no head the role.

N heads, W words, P pieces, M measures, R relations in both directions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heads.settings import RolesSettings
from heads.words import Arc, Attended, on_words

COLUMNS = ("layer", "head", "role", "name", "accuracy", "baseline", "cases", "holds")
OFFSETS = (-2, -1, 0, 1, 2)
DIRECTIONS = ("dependent-to-head", "head-to-dependent")
RAREST = ("rarest", "one of two rarest")
LONGEST = 200
"""Sentences of more words are left out: they are faulty lines more often than sentences."""
SHORTEST = 2
"""In a sentence of one word every head points at it."""

NOWHERE = -1
ROUNDING = 1e-9
"""What a share may lack of its threshold, so that 0.3 is 0.1 above 0.2 in floating point too."""

Row = dict[str, str | int | float | None]
Whole = NDArray[np.int64]
Hits = tuple[Whole, Whole]
"""Hits [N, M] and cases [M] of some measures."""
Offsets = Counter[tuple[int, int]]
"""How many words have a partner at an offset, by index of relation and direction [R] and offset."""


def pointed(weights: NDArray[np.floating]) -> Whole:
    """Where each query of weights [N, Q, K] looks most, [N, Q]; -1 where only zeros are left to look at."""
    return np.where(weights.max(-1) > 0, weights.argmax(-1), NOWHERE)


def positional(targets: Whole) -> Hits:
    """Words that point at each of OFFSETS, for targets [N, W]."""
    own = np.arange(targets.shape[1])[:, None]
    wanted = own + np.array(OFFSETS)
    inside = (wanted >= 0) & (wanted < len(own))
    return ((targets[:, :, None] == wanted) & inside).sum(1), inside.sum(0)


def partners_of(arcs: Iterable[Arc], words: int, relations: Sequence[str]) -> NDArray[np.bool_]:
    """[R, W, W], whether a word has another as its partner in a relation and direction."""
    partners = np.zeros((len(relations), len(DIRECTIONS), words, words), bool)
    for arc in arcs:
        for index, relation in enumerate(relations):
            if relation in (arc.relation, arc.relation.partition(":")[0]):
                partners[index, 0, arc.dependent, arc.head] = True
                partners[index, 1, arc.head, arc.dependent] = True
    return partners.reshape(-1, words, words)


def syntactic(targets: Whole, partners: NDArray[np.bool_]) -> Hits:
    """Arcs that are hit, for targets [N, W] and partners [R, W, W], and how many arcs there are.

    A word with two dependents of a relation is two cases, of which its one target hits one at most: the paper's
    positional baselines are the same in both directions, which counting words would not give.
    """
    hit = partners[:, np.arange(targets.shape[1]), targets] & (targets != NOWHERE)
    return hit.sum(-1).T, partners.sum((-1, -2))


def offsets_of(partners: NDArray[np.bool_]) -> Offsets:
    """Offsets of the partners [R, W, W] of one sentence."""
    return Counter((relation, key - query) for relation, query, key in np.argwhere(partners).tolist())


def frequency_ranks(ids: NDArray[np.integer], pieces: int) -> Whole:
    """Rank of each of `pieces` pieces by its count in `ids`: 0 is the most frequent, ties go by number."""
    order = np.argsort(-np.bincount(ids, minlength=pieces), kind="stable")
    return np.argsort(order, kind="stable")


def rare(targets: Whole, ranks: Whole, outside_top: int) -> Hits:
    """Pieces that point at the rarest and at one of the two rarest, for targets [N, P] and ranks [P]."""
    different = np.unique(ranks)
    if different[-1] < outside_top or len(different) <= len(RAREST):
        return np.zeros((len(targets), len(RAREST)), np.int64), np.zeros(len(RAREST), np.int64)
    rank = np.where(targets == NOWHERE, NOWHERE, ranks[targets])
    hits = np.stack([rank == different[-1], rank >= different[-2]], -1).sum(1)
    return hits, np.full(len(RAREST), len(ranks))


@dataclass(frozen=True, slots=True)
class Measure:
    """One question asked of every head, with all that is the same for every head."""

    role: str
    name: str
    cases: int
    baseline: float | None
    threshold: float | None
    """The accuracy that gives a head the role; None when nothing does."""


def measures(cases: Whole, offsets: Offsets, settings: RolesSettings) -> list[Measure]:
    """All measures in the order of a head's rows, for the number of cases [M] of each."""
    by_offset, by_relation, by_rarity = np.split(cases, [len(OFFSETS), -len(RAREST)])
    found = []
    for offset, count in zip(OFFSETS, by_offset.tolist(), strict=True):
        name = f"{offset:+d}" if offset else "0"
        found.append(Measure("positional", name, count, None, settings.positional_share))
    for index, count in enumerate(by_relation.tolist()):
        relation, way = divmod(index, len(DIRECTIONS))
        name = f"{settings.relations[relation]} {DIRECTIONS[way]}"
        best = max((number for (which, _), number in offsets.items() if which == index), default=0)
        baseline = best / count if count else None
        found.append(Measure("syntactic", name, count, baseline, _above(baseline, settings)))
    for name, count, share in zip(RAREST, by_rarity.tolist(), (None, settings.rare_share), strict=True):
        found.append(Measure("rare", name, count, None, share))
    return found


def _above(baseline: float | None, settings: RolesSettings) -> float | None:
    if baseline is None:
        return None
    margin = settings.syntactic_margin
    return baseline * (1 + margin) if settings.margin_is_relative else baseline + margin


def roles(
    attended: Iterable[Attended], heads: Sequence[tuple[int, int]], ranks: Whole, settings: RolesSettings
) -> list[Row]:
    """Every measure of every head, as rows of COLUMNS.

    heads: (layer, original number) in the order of the weights. ranks: of all pieces of the source
    vocabulary, from `frequency_ranks`.
    """
    size = len(OFFSETS) + len(settings.relations) * len(DIRECTIONS) + len(RAREST)
    hits, cases = np.zeros((len(heads), size), np.int64), np.zeros(size, np.int64)
    offsets: Offsets = Counter()
    for words, weights in attended:
        targets = pointed(on_words(weights, words.membership))
        partners = partners_of(words.arcs, len(words), settings.relations)
        of_pieces = rare(pointed(weights), ranks[words.pieces], settings.rare_outside_top)
        parts = [positional(targets), syntactic(targets, partners), of_pieces]
        hits += np.concatenate([part[0] for part in parts], 1)
        cases += np.concatenate([part[1] for part in parts])
        offsets.update(offsets_of(partners))
    asked = measures(cases, offsets, settings)
    return [
        _row(head, measure, hit, settings.min_cases)
        for head, of_head in zip(heads, hits.tolist(), strict=True)
        for measure, hit in zip(asked, of_head, strict=True)
    ]


def _row(head: tuple[int, int], measure: Measure, hits: int, min_cases: int) -> Row:
    accuracy = hits / measure.cases if measure.cases else None
    holds = False
    if accuracy is not None and measure.threshold is not None and measure.cases >= min_cases:
        holds = accuracy >= measure.threshold - ROUNDING
    facts = (*head, measure.role, measure.name, accuracy, measure.baseline, measure.cases, int(holds))
    return dict(zip(COLUMNS, facts, strict=True))


def labels(rows: Iterable[Mapping[str, object]]) -> dict[tuple[int, int], set[str]]:
    """The roles that each head of some rows holds, none included; rows may be those of a table file."""
    held: dict[tuple[int, int], set[str]] = {}
    for row in rows:
        roles_of_head = held.setdefault((int(str(row["layer"])), int(str(row["head"]))), set())
        if str(row["holds"]) == "1":
            roles_of_head.add(str(row["role"]))
    return held

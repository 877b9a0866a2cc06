"""Roles of cross-attention heads: the source of the token being written, of the previous or next one.

The decoder reads the reference. At step t, which writes target subword t, a head looks at the source subword with its
largest weight. The score of a role is the share of steps where this source subword is linked with target subword t
(being written), t-1 (written last) or t+1 (written next). A step is not a case if that target subword does not exist or
has no link. A head whose largest weight is on the source's EOS looks nowhere.

Links are either given between words, each linking all subwords of its two words, or made by the model's best aligner.
This is the head and role whose source subword carries most information about the target subword of the role; it links
each of these target subwords with the source subword that it looks at. The aligner itself is scored by the links of the
best other head. The information, in nats per subword, is the mean of log p(target | source) / p(target), where p is
counted in the same steps of all other sentences and smoothed by one occurrence that is distributed like the target
subwords, so that an unseen source subword gives zero and an unseen pair not minus infinity. The higher it is, the more
the model's own links can be trusted.

The baseline of each share is the best fixed offset on the same cases, source subword t + k in step t. Intervals are by
bootstrap over pairs, with the best offset recomputed in every draw. A head has a role if the interval supports that its
share exceeds the best offset's by at least the margin.

N heads, T target and S source subwords, P pairs, K offsets.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heads.analysis.alignment_heads import Gold
from heads.analysis.attention_weights import attend_to_source
from heads.analysis.roles import NOWHERE, Floats, Row, Whole, sampled, shares
from heads.base.bootstrap import ROUNDING, interval
from heads.base.columns import CROSS_ATTENTION_COLUMNS
from heads.config.analyses import AlignmentHeadsSettings
from heads.model.transformer import Transformer

ROLES = {"being written": 0, "written last": -1, "written next": 1}
"""Position of the target subword that a role is about, relative to the one that the step writes."""
GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Looked:
    """A pair: its subwords, the source subword that each head looks at in each step [N, T], and the links [S, T]."""

    source: Whole
    target: Whole
    at: Whole
    """NOWHERE where the largest weight is on EOS."""
    linked: NDArray[np.bool_] | None = None


def between_subwords(gold: Gold) -> NDArray[np.bool_]:
    """Links between words as links between all of their subwords [S, T]."""
    source, target = gold.source.membership > 0, gold.target.membership > 0
    return np.asarray(source.T.astype(int) @ gold.linked @ target > 0)


class Aligner(NamedTuple):
    """A head, by index, whose source subwords are linked with a role's target subwords, and their information."""

    head: int
    role: str
    information: float


def looked_at(weights: NDArray[np.floating]) -> Whole:
    """The source subword that each head looks at [N, T], by weights [N, T, S] without the column of EOS."""
    best = weights.argmax(-1)
    return np.where(weights.max(-1) >= 1 - weights.sum(-1), best, NOWHERE)


def about(role: str, steps: int) -> tuple[slice, slice]:
    """The steps that have a case under a role, and the target subwords that they are about."""
    shift = ROLES[role]
    own = slice(max(0, -shift), steps - max(0, shift))
    return own, slice(own.start + shift, own.stop + shift)


def aligners(pairs: Sequence[Looked]) -> list[Aligner]:
    """Every head, by index, with the role in which it is most informative about the target subword; best first."""
    best = [
        max((Aligner(head, role, information_by(pairs, head, role)) for role in ROLES), key=attrgetter("information"))
        for head in range(len(pairs[0].at))
    ]
    return sorted(best, key=attrgetter("information"), reverse=True)


def information_by(pairs: Sequence[Looked], head: int, role: str) -> float:
    """Mean information in nats of the source subword a head looks at about the target subword a role is about."""
    seen = [_seen(pair, head, role) for pair in pairs]
    joint, sources, targets = Counter[tuple[int, int]](), Counter[int](), Counter[int]()
    for steps in seen:
        joint.update(steps)
        sources.update(source for source, _ in steps)
        targets.update(target for _, target in steps)
    nats = 0.0
    for steps in seen:
        own = Counter(steps), Counter(source for source, _ in steps), Counter(target for _, target in steps)
        others = targets.total() - len(steps)
        for source, target in steps:
            if share := (targets[target] - own[2][target]) / max(others, 1):
                together, alone = joint[source, target] - own[0][source, target], sources[source] - own[1][source]
                nats += math.log((together + share) / (alone + 1) / share)
    return nats / max(targets.total(), 1)


def _seen(pair: Looked, head: int, role: str) -> list[tuple[int, int]]:
    """Ids of the source subword that a head looks at and of the target subword of a role, for each step."""
    own, wanted = about(role, len(pair.target))
    at, target = pair.at[head, own], pair.target[wanted]
    there = at != NOWHERE
    return list(zip(pair.source[at[there]].tolist(), target[there].tolist(), strict=True))


def linked_by(pair: Looked, head: int, role: str) -> NDArray[np.bool_]:
    """The links [S, T] of a pair that a head makes under a role."""
    links = np.zeros((len(pair.source), len(pair.target)), bool)
    own, wanted = about(role, len(pair.target))
    at, places = pair.at[head, own], np.arange(len(pair.target))[wanted]
    links[at[at != NOWHERE], places[at != NOWHERE]] = True
    return links


def roles_of_cross_attention(
    model: Transformer, golds: Sequence[Gold], settings: AlignmentHeadsSettings, *, linked: bool
) -> list[Row]:
    """Rows of `cross_attention_roles` for all cross-attention heads of a model.

    linked: score them by the given links of the pairs, otherwise by those of the best aligner among the heads.
    """
    heads = [(layer, head) for _, layer, head in model.shape.heads(("dec_enc",))]
    attended = attend_to_source(model, [(gold.source, gold.target) for gold in golds], settings.batch_tokens)
    pairs = [
        Looked(
            np.asarray(golds[number].source.subwords, np.int64),
            np.asarray(golds[number].target.subwords, np.int64),
            looked_at(weights[:, :-1]),
            between_subwords(golds[number]) if linked else None,
        )
        for number, weights in attended
    ]
    return cross_attention_roles(pairs, heads, settings)


def cross_attention_roles(
    pairs: Sequence[Looked], heads: Sequence[tuple[int, int]], settings: AlignmentHeadsSettings
) -> list[Row]:
    """One row as in CROSS_ATTENTION_COLUMNS for each head and role.

    heads: layer and original number in the order of `Looked.at`. Links are given with all pairs or with
    none; without them, a single head has no rows, as no other head can align.
    """
    if not heads or not pairs:
        return []
    everyone = range(len(heads))
    if pairs[0].linked is not None:
        given = [pair.linked for pair in pairs if pair.linked is not None]
        return [row for role in ROLES for row in _rows(pairs, given, role, heads, everyone, settings, GIVEN, None)]
    if len(heads) == 1:
        return []
    first, second = aligners(pairs)[:2]
    rows: list[Row] = []
    for role in ROLES:
        others = [head for head in everyone if head != first.head]
        for by, measured in ((first, others), (second, [first.head])):
            layer, number = heads[by.head]
            links, name = [linked_by(pair, by.head, by.role) for pair in pairs], f"{layer}.{number} {by.role}"
            rows += _rows(pairs, links, role, heads, measured, settings, name, by.information)
    return sorted(rows, key=lambda row: ([*ROLES].index(str(row["role"])), row["layer"], row["head"]))


def _rows(
    pairs: Sequence[Looked],
    links: Sequence[NDArray[np.bool_]],
    role: str,
    heads: Sequence[tuple[int, int]],
    measured: Sequence[int],
    settings: AlignmentHeadsSettings,
    name: str,
    information: float | None,
) -> list[Row]:
    """Rows of the `measured` heads under one role, scored by links of the given name."""
    cases, hits = _hits(pairs, links, role)
    offsets, found = _by_offset(links, role)
    cases, hits, found = sampled([cases, hits[:, measured], found], settings.bootstrap)
    own, by_offset = shares(hits, cases), shares(found, cases)
    best = by_offset.max(1, keepdims=True)
    (low, high), (gain_low, gain_high) = interval(own[1:]), interval((own - best)[1:])
    beside = offsets[int(by_offset[0].argmax())], float(best[0, 0])
    facts = int(cases[0, 0]), len(pairs), name, information
    rows: list[Row] = []
    for place, head in enumerate(measured):
        shown = (float(own[0, place]), float(low[place]), float(high[place]))
        ends = (float(gain_low[place]), float(gain_high[place]))
        holds = int(gain_low[place] - settings.margin >= -ROUNDING)
        cells = (*heads[head], role, *shown, *beside, *ends, *facts, holds)
        rows.append(dict(zip(CROSS_ATTENTION_COLUMNS, cells, strict=True)))
    return rows


def _hits(pairs: Sequence[Looked], links: Sequence[NDArray[np.bool_]], role: str) -> tuple[Floats, Floats]:
    """For each pair, the cases of a role [P, 1], and those in which each head looks at a linked subword [P, N]."""
    cases, hits = [], []
    for pair, linked in zip(pairs, links, strict=True):
        own, wanted = about(role, len(pair.target))
        at, part = pair.at[:, own], linked[:, wanted]
        cases.append([part.any(0).sum()])
        hits.append((part[at, np.arange(part.shape[1])] & (at != NOWHERE)).sum(1))
    return np.array(cases, float), np.array(hits, float)


def _by_offset(links: Sequence[NDArray[np.bool_]], role: str) -> tuple[list[int], Floats]:
    """Offsets of the links, and for each pair the cases of a role that each offset would hit, [P, K]."""
    found = []
    for linked in links:
        own, wanted = about(role, linked.shape[1])
        source, case = np.nonzero(linked[:, wanted])
        found.append(Counter((source - (case + own.start)).tolist()))
    offsets = sorted(set().union(*found)) or [0]
    return offsets, np.array([[one[offset] for offset in offsets] for one in found], float)

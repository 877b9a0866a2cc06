"""Roles of cross-attention heads against hand-made attention and a literal version of the definition."""

import math
from typing import Any

import numpy as np
import pytest

from heads.analysis.alignment_heads import Gold
from heads.analysis.cross_attention_roles import (
    ROLES,
    Looked,
    between_subwords,
    cross_attention_roles,
    information_by,
    looked_at,
)
from heads.base.columns import CROSS_ATTENTION_COLUMNS
from heads.config.analyses import AlignmentHeadsSettings
from heads.syntax.words import Words

SETTINGS = AlignmentHeadsSettings(bootstrap=200)
HEADS = [(0, 2), (0, 5), (1, 1), (1, 3)]
"""Layer and original number of the heads below: at the word being written, at the last, at the next, at the first."""


def translated(generator: np.random.Generator, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A source, its reordered translation (each word plus 100), and each target word's source position."""
    source, order = generator.permutation(30)[:length], generator.permutation(length)
    return source, source[order] + 100, order


def made(number: int = 60, *, linked: bool = False) -> list[Looked]:
    generator, pairs = np.random.default_rng(3), []
    for length in generator.integers(4, 9, number):
        source, target, order = translated(generator, length)
        after = [*order[1:], -1]
        at = np.array([order, [-1, *order[:-1]], after, [0] * length])
        links = np.zeros((length, length), bool)
        links[order, np.arange(length)] = True
        pairs.append(Looked(source, target, at, links if linked else None))
    return pairs


def shares(rows: list[dict[str, Any]]) -> dict[tuple[int, int, str], float]:
    return {(row["layer"], row["head"], row["role"]): row["share"] for row in rows}


@pytest.mark.parametrize("linked", [True, False])
def test_heads_are_told_apart_by_the_target_word_whose_source_they_look_at(*, linked: bool) -> None:
    rows = cross_attention_roles(made(linked=linked), HEADS, SETTINGS)
    assert [tuple(row) for row in rows] == [CROSS_ATTENTION_COLUMNS] * len(HEADS) * len(ROLES)
    found = shares(rows)
    assert found[0, 2, "being written"] == found[0, 5, "written last"] == found[1, 1, "written next"] == 1
    assert max(share for (*head, _), share in found.items() if tuple(head) == (1, 3)) < 0.4
    holds = {(row["layer"], row["head"], row["role"]) for row in rows if row["holds"]}
    assert holds == {(0, 2, "being written"), (0, 5, "written last"), (1, 1, "written next")}
    assert {row["linked_by"] for row in rows if linked} <= {"given"}


def test_the_best_aligner_links_for_all_others_and_the_next_best_one_for_itself() -> None:
    """The head at the word being written is one position off at every third step, so it is only the next best."""
    pairs = made()
    for pair in pairs:
        pair.at[0, ::3] = (pair.at[0, ::3] + 1) % len(pair.source)
        pair.at[2] = pair.at[3]
    rows = cross_attention_roles(pairs, HEADS, SETTINGS)
    assert {(row["layer"], row["head"]): row["linked_by"] for row in rows} == {
        (0, 2): "0.5 written last", (0, 5): "0.2 being written", (1, 1): "0.5 written last", (1, 3): "0.5 written last",
    }  # fmt: skip
    assert 0.4 < shares(rows)[0, 5, "written last"] < 0.9
    assert {row["information"] for row in rows} == {
        information_by(pairs, 1, "written last"),
        information_by(pairs, 0, "being written"),
    }


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("head", range(4))
def test_what_a_head_tells_is_counted_in_all_other_sentences(head: int, role: str) -> None:
    pairs, shift = made(8), ROLES[role]
    steps = [
        [
            (int(pair.source[at]), int(pair.target[step + shift]))
            for step, at in enumerate(pair.at[head].tolist())
            if 0 <= step + shift < len(pair.target) and at >= 0
        ]
        for pair in pairs
    ]
    nats = []
    for number, own in enumerate(steps):
        others = [step for other, one in enumerate(steps) if other != number for step in one]
        for source, target in own:
            p_target = sum(t == target for _, t in others) / len(others)
            with_source = [t for s, t in others if s == source]
            p = (with_source.count(target) + p_target) / (len(with_source) + 1)
            nats.append(math.log(p / p_target) if p_target else 0.0)
    assert information_by(pairs, head, role) == pytest.approx(sum(nats) / len(nats))


def test_a_role_has_no_case_where_there_is_no_such_word_or_no_link_and_looking_nowhere_is_a_miss() -> None:
    links = np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0]], bool)
    at = np.array([[0, 1, -1], [-1, 0, 2]])
    pairs = [Looked(np.array([7, 8, 9]), np.array([5, 6, 7]), at, links)] * 2
    rows = cross_attention_roles(pairs, [(0, 0), (0, 1)], SETTINGS)
    assert {(row["role"], row["cases"]) for row in rows} == {
        ("being written", 4), ("written last", 2), ("written next", 2),
    }  # fmt: skip
    assert shares(rows) == {
        (0, 0, "being written"): 0.5, (0, 1, "being written"): 0.0, (0, 0, "written last"): 0.0,
        (0, 1, "written last"): 1.0, (0, 0, "written next"): 1.0, (0, 1, "written next"): 0.0,
    }  # fmt: skip


def test_the_best_fixed_offset_stands_beside_each_share() -> None:
    """Every third word is translated two positions earlier, all others at their own position."""
    links = np.zeros((9, 7), bool)
    for target in range(7):
        links[target + 2 * (target % 3 == 0), target] = True
    rows = cross_attention_roles([Looked(np.arange(9), np.arange(7), np.zeros((1, 7), int), links)], [(0, 0)], SETTINGS)
    assert [(row["role"], row["offset"], row["offset_share"]) for row in rows] == [
        ("being written", 0, pytest.approx(4 / 7)), ("written last", -1, pytest.approx(4 / 6)),
        ("written next", 1, pytest.approx(4 / 6)),
    ]  # fmt: skip


def test_a_head_looks_nowhere_where_the_end_sign_has_most_of_its_weight() -> None:
    weights = np.array([[[0.2, 0.5, 0.1], [0.2, 0.25, 0.2], [0.0, 0.0, 0.0]]])
    assert looked_at(weights).tolist() == [[1, -1, -1]]


def test_links_between_words_link_all_their_subwords() -> None:
    source = Words(0, ("a", "bc"), (), np.arange(3, dtype=np.int32), np.array([[1, 0, 0], [0, 1, 1.0]]))
    target = Words(0, ("x", "yz"), (), np.arange(3, dtype=np.int32), np.array([[1, 0.5, 0], [0, 0.5, 1.0]]))
    linked = between_subwords(Gold(source, target, np.array([[0, 1], [1, 0]], bool)))
    assert linked.astype(int).tolist() == [[0, 1, 1], [1, 1, 0], [1, 1, 0]]


def test_there_are_no_rows_without_heads_or_without_another_head_to_link_by() -> None:
    assert cross_attention_roles(made(3), [], SETTINGS) == []
    alone = [Looked(pair.source, pair.target, pair.at[:1]) for pair in made(3)]
    assert cross_attention_roles(alone, HEADS[:1], SETTINGS) == []

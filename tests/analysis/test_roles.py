"""Head roles on hand-made attention maps, and against literal versions of the definitions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heads.analysis.roles import frequency_ranks, pointed, positional, positions, rare, roles
from heads.base.columns import ROLE_COLUMNS
from heads.base.files import read_tsv, write_tsv
from heads.config.analyses import RolesSettings
from heads.syntax.words import Arc, Words, usable

SETTINGS = RolesSettings(bootstrap=200, relations=("nsubj", "advmod"), min_cases=1, rare_outside_top=12)
RANKS = np.arange(20)


def looking(*targets: Sequence[int]) -> NDArray[np.float32]:
    """One map for each head, whose words look most at the given words."""
    weights = np.full((len(targets), len(targets[0]), len(targets[0])), 0.1, np.float32)
    for head, of_head in enumerate(targets):
        for word, target in enumerate(of_head):
            weights[head, word, target] = 0.4
    return weights


def sentence(words: int, *arcs: tuple[int, int, str], subwords: Sequence[int] | None = None) -> Words:
    """A sentence whose words are one subword each, by default the most frequent ones."""
    ids = np.array(range(words) if subwords is None else subwords, np.int32)
    forms = tuple("abcdefghijkl"[:words])
    return Words(0, forms, tuple(Arc(*arc) for arc in arcs), ids, np.eye(words))


def labels(rows: Iterable[Mapping[str, object]]) -> dict[tuple[int, int], set[str]]:
    """The roles that each head holds, possibly none; rows may come from a table file."""
    held: dict[tuple[int, int], set[str]] = {}
    for row in rows:
        of_head = held.setdefault((int(str(row["layer"])), int(str(row["head"]))), set())
        of_head |= {str(row["role"])} if str(row["holds"]) == "1" else set()
    return held


def measured(
    rows: Sequence[dict[str, Any]], name: str, verdict: str = "holds", *, words: bool = False
) -> list[tuple[Any, ...]]:
    """Accuracy, baseline, cases and verdict of every head for one measure; offsets count subwords, or `words`."""
    columns = ("accuracy", "baseline", "cases", verdict)
    chosen = [row for row in rows if row["name"] == name and (row["role"] == "positional_words") == words]
    return [tuple(row[column] for column in columns) for row in chosen]


def test_a_positional_head_is_judged_only_where_its_offset_lies_inside_the_sentence() -> None:
    back, forth = [0, 0, 1, 2], [1, 2, 3, 3]
    hits, cases = positional(pointed(looking(back, forth, [0, 1, 2, 3])))
    assert cases.tolist() == [2, 3, 4, 3, 2]
    assert hits.tolist() == [[0, 3, 1, 0, 0], [0, 0, 1, 3, 0], [0, 0, 4, 0, 0]]
    rows = roles([(sentence(4), looking(back, forth))], [(0, 5), (2, 1)], RANKS, SETTINGS)
    assert measured(rows, "-1") == [(1.0, None, 3, 1), (0.0, None, 3, 0)]
    assert measured(rows, "+1") == [(0.0, None, 3, 0), (1.0, None, 3, 1)]
    assert labels(rows) == {(0, 5): {"positional"}, (2, 1): {"positional"}}


def of_several_subwords(*lengths: int) -> Words:
    """A sentence whose words have the given numbers of subwords."""
    member = np.zeros((len(lengths), sum(lengths)))
    for word, (end, length) in enumerate(zip(np.cumsum(lengths), lengths, strict=True)):
        member[word, end - length : end] = 1
    return Words(0, tuple("abcdefg"[: len(lengths)]), (), np.zeros(sum(lengths), np.int32), member)


def test_a_sentence_of_just_the_allowed_length_is_measured_and_a_longer_one_counted() -> None:
    words = replace(of_several_subwords(2, 3), covered=2)
    for allowed, measured_, too_long in ((5, 1, 0), (4, 0, 1)):
        kept, counts = usable([words], allowed)
        assert (len(kept), counts["measured"], counts["too_long"]) == (measured_, measured_, too_long)


def always_next(subwords: int) -> NDArray[np.float32]:
    """A head whose subwords all look at the next one; the last looks at EOS, which is dropped."""
    return np.eye(subwords, k=1, dtype=np.float32)[None]


def test_a_perfect_head_at_the_next_subword_is_found_on_subwords_and_falls_short_on_words() -> None:
    """In a word of three subwords, two looks of three stay inside; only the one-subword word looks on."""
    rows = roles([(of_several_subwords(3, 1, 2), always_next(6))] * 30, [(0, 0)], RANKS, SETTINGS)
    assert measured(rows, "+1") == [(1.0, None, 30 * 5, 1)]
    assert measured(rows, "+1", words=True) == [(0.5, None, 30 * 2, 0)]
    assert measured(rows, "0", words=True) == [(pytest.approx(2 / 3), None, 30 * 3, 0)]
    assert labels(rows) == {(0, 0): {"positional"}}


def test_an_offset_of_words_never_gives_the_role_however_well_it_is_met() -> None:
    """Words of two subwords, each looking only at the second subword of the next word, 2 or 3 subwords ahead."""
    words, weights = of_several_subwords(2, 2, 2, 2), np.zeros((1, 8, 8), np.float32)
    for subword in range(6):
        weights[0, subword, subword // 2 * 2 + 3] = 1
    rows = roles([(words, weights)] * 30, [(0, 0)], RANKS, SETTINGS)
    row = next(row for row in rows if row["role"] == "positional_words" and row["name"] == "+1")
    assert [row[name] for name in ("accuracy", "cases", "reaches", "holds")] == [1.0, 90, 0, 0]
    assert row["excess_low"] == row["excess_high"] == pytest.approx(0.1)
    assert measured(rows, "+2") == [(0.5, None, 180, 0)]
    assert labels(rows) == {(0, 0): set()}


def test_the_end_sign_is_neither_a_case_of_an_offset_nor_its_target() -> None:
    """With three subwords, +1 has two cases, and a head that looks only at EOS hits none."""
    words = of_several_subwords(1, 2)
    for weights, hits in ((always_next(3), 2), (np.zeros((1, 3, 3), np.float32), 0)):
        rows = roles([(words, weights)], [(0, 0)], RANKS, SETTINGS)
        assert measured(rows, "+1") == [(hits / 2, None, 2, int(hits == 2))]
        assert [measured(rows, name)[0][2] for name in ("-2", "-1", "0", "+1", "+2")] == [1, 2, 3, 2, 1]


def test_dependents_are_counted_where_they_stand_as_seen_from_their_heads() -> None:
    first = sentence(5, (0, 2, "nsubj"), (4, 2, "advmod"), (1, 2, "advmod"))
    second = sentence(4, (0, 2, "nsubj:pass"), (3, 2, "obj"), (1, 2, "advmod"))
    counted = [tuple(row.values()) for row in positions([first, second], ["nsubj", "advmod", "amod"])]
    assert counted == [("nsubj", -2, 2), ("advmod", -1, 2), ("advmod", 2, 1)]
    assert positions([], ["nsubj"]) == []


def test_the_best_place_of_dependents_is_the_baseline_of_both_directions() -> None:
    attended = margin_case([1] * 5 + [2] * 3 + [-1] * 2, 0)
    arcs: dict[Any, Any] = {
        row["position"]: row["arcs"] for row in positions([words for words, _ in attended], ["nsubj"])
    }
    assert arcs == {-1: 5, -2: 3, 1: 2}
    rows = roles(attended, [(0, 0)], RANKS, SETTINGS)
    for way in ("dependent-to-head", "head-to-dependent"):
        assert measured(rows, f"nsubj {way}")[0][1] == max(arcs.values()) / 10


def test_the_share_of_a_positional_head_may_just_reach_its_threshold() -> None:
    attended = [(sentence(11), looking([0, *range(9), 3]))]
    assert measured(roles(attended, [(0, 0)], RANKS, SETTINGS), "-1") == [(0.9, None, 10, 1)]
    stricter = SETTINGS.model_copy(update={"positional_share": 0.91})
    assert measured(roles(attended, [(0, 0)], RANKS, stricter), "-1") == [(0.9, None, 10, 0)]


def test_a_word_that_looks_only_at_the_end_sign_points_nowhere() -> None:
    weights = looking([1, 2, 0])
    weights[0, 0] = 0
    assert pointed(weights).tolist() == [[-1, 2, 0]]
    rows = roles([(sentence(3, (0, 2, "nsubj")), weights)], [(0, 0)], RANKS, SETTINGS)
    assert measured(rows, "-1") == [(0.0, None, 2, 0)]
    assert measured(rows, "nsubj dependent-to-head") == [(0.0, 1.0, 1, 0)]
    assert rare(pointed(weights), np.array([0, 1, 9]), 3)[0].tolist() == [[1, 1]]


def test_a_syntactic_head_hits_partners_in_one_direction_and_one_of_two_arcs_at_most() -> None:
    verb = sentence(5, (0, 2, "nsubj"), (1, 2, "advmod"), (4, 2, "advmod"))
    to_verb, from_verb = [2, 2, 2, 2, 2], [0, 1, 4, 3, 4]
    rows = roles([(verb, looking(to_verb, from_verb))], [(0, 0), (0, 1)], RANKS, SETTINGS)
    assert measured(rows, "advmod dependent-to-head") == [(1.0, 0.5, 2, 1), (0.0, 0.5, 2, 0)]
    assert measured(rows, "advmod head-to-dependent") == [(0.0, 0.5, 2, 0), (0.5, 0.5, 2, 0)]
    assert measured(rows, "nsubj dependent-to-head") == [(1.0, 1.0, 1, 0), (0.0, 1.0, 1, 0)]


def test_a_relation_counts_with_its_subtypes_and_a_subtype_alone() -> None:
    passive = sentence(4, (0, 3, "nsubj:pass"), (1, 3, "nsubj"), (2, 3, "nsubjx"))
    subtypes = SETTINGS.model_copy(update={"relations": ("nsubj", "nsubj:pass")})
    rows = roles([(passive, looking([3, 0, 3, 0]))], [(1, 1)], RANKS, subtypes)
    assert measured(rows, "nsubj dependent-to-head") == [(0.5, 0.5, 2, 0)]
    assert measured(rows, "nsubj:pass dependent-to-head") == [(1.0, 1.0, 1, 0)]


def margin_case(offsets: Sequence[int], hits: int) -> list[tuple[Words, NDArray[np.float32]]]:
    """Sentences of six words with a subject at each offset from word 3; a head finds the first `hits`."""
    return [
        (sentence(6, (3, 3 + offset, "nsubj")), looking([3 + offset if number < hits else 3] * 6))
        for number, offset in enumerate(offsets)
    ]


def test_the_margin_is_in_points_or_relative_and_may_be_met_exactly() -> None:
    attended = margin_case([1] * 2 + [2] * 2 + [-1] * 2 + [-2] * 2 + [-3] * 2, 3)
    name = "nsubj dependent-to-head"
    for relative, margin, holds in [(False, 0.1, 1), (False, 0.11, 0), (True, 0.5, 1), (True, 0.51, 0)]:
        changed = SETTINGS.model_copy(update={"margin_is_relative": relative, "syntactic_margin": margin})
        rows = roles(attended, [(0, 0)], RANKS, changed)
        assert measured(rows, name, "reaches") == [(0.3, 0.2, 10, holds)], (relative, margin)


def test_too_few_cases_have_an_accuracy_but_make_no_role() -> None:
    scattered = sentence(6, (0, 1, "nsubj"), (2, 4, "nsubj"), (5, 2, "nsubj"))
    attended = [(scattered, looking([1, 1, 4, 3, 4, 2]))]
    name = "nsubj dependent-to-head"
    for least, holds in [(3, 1), (4, 0)]:
        rows = roles(attended, [(0, 0)], RANKS, SETTINGS.model_copy(update={"min_cases": least}))
        assert measured(rows, name) == [(1.0, pytest.approx(1 / 3), 3, holds)]


def test_a_relation_without_a_case_has_an_empty_accuracy(tmp_path: Path) -> None:
    rows = roles([(sentence(3), looking([0, 0, 0]))], [(0, 0)], RANKS, SETTINGS)
    assert measured(rows, "advmod head-to-dependent") == [(None, None, 0, 0)]
    write_tsv(tmp_path / "roles.tsv", rows, ROLE_COLUMNS)
    cells = measured(read_tsv(tmp_path / "roles.tsv"), "advmod head-to-dependent")
    assert cells == [("", "", "0", "0")]


def test_a_rare_word_head_points_at_the_rarest_or_one_of_the_two_rarest() -> None:
    words = sentence(5, subwords=[4, 19, 1, 17, 19])
    rows = roles([(words, looking([1, 4, 1, 3, 0], [2] * 5))], [(0, 0), (0, 1)], RANKS, SETTINGS)
    assert measured(rows, "rarest") == [(0.6, None, 5, 0), (0.0, None, 5, 0)]
    assert measured(rows, "one of two rarest") == [(0.8, None, 5, 1), (0.0, None, 5, 0)]
    assert labels(rows) == {(0, 0): {"rare"}, (0, 1): set()}


@pytest.mark.parametrize(
    ("subwords", "outside_top", "cases"),
    [([0, 1, 5], 5, 3), ([0, 1, 5], 6, 0), ([0, 1, 5], 10**6, 0), ([5, 9, 5], 2, 0)],
)
def test_only_sentences_with_a_rare_subword_and_two_others_count(
    subwords: list[int], outside_top: int, cases: int
) -> None:
    attended = [(sentence(3, subwords=subwords), looking([0, 1, 2]))]
    rows = roles(attended, [(0, 0)], RANKS, SETTINGS.model_copy(update={"rare_outside_top": outside_top}))
    accuracy, _, counted, _ = measured(rows, "rarest")[0]
    assert counted == cases
    assert (accuracy is None) == (cases == 0)


def test_an_unknown_subword_is_never_a_rare_one() -> None:
    """Subword 3 is the unknown token, which would be the rarest of all: it never occurs in training."""
    ranks = np.array([0, 1, 2, 19, 4, 5, 6, 17, 18])
    attended = [(sentence(4, subwords=[1, 3, 7, 8]), looking([1, 1, 1, 1], [3, 3, 2, 1]))]
    rows = roles(attended, [(0, 0), (0, 1)], ranks, SETTINGS)
    assert measured(rows, "rarest") == [(0.0, None, 4, 0), (0.5, None, 4, 0)]
    assert measured(rows, "one of two rarest") == [(0.0, None, 4, 0), (0.75, None, 4, 1)]
    lone = [(sentence(3, subwords=[1, 2, 3]), looking([2, 2, 2]))]
    assert measured(roles(lone, [(0, 0)], ranks, SETTINGS), "rarest") == [(None, None, 0, 0)]


def test_ranks_go_from_the_most_frequent_subword_to_those_never_seen() -> None:
    ids = np.array([3, 1, 1, 5, 3, 1, 0], np.int32)
    assert frequency_ranks(ids, 7).tolist() == [2, 0, 4, 1, 5, 3, 6]


def slowly(maps: list[tuple[Words, NDArray[np.float32]]], head: int, relation: str) -> tuple[int, int, int]:
    """Hits, cases and hits of the best constant offset of subject-to-verb pairs, by the definition."""
    hits, cases, by_offset = 0, 0, dict.fromkeys(range(-12, 13), 0)
    for words, weights in maps:
        for arc in words.arcs:
            if arc.relation == relation:
                cases += 1
                row = list(weights[head, arc.dependent])
                hits += row.index(max(row)) == arc.head
                by_offset[arc.head - arc.dependent] += 1
    return hits, cases, max(by_offset.values())


def test_random_attention_agrees_with_the_definition_for_every_head() -> None:
    generator = np.random.default_rng(3)
    attended = []
    for words in [2, 5, 7, 9, 12] * 6:
        arcs = [(w, int(generator.integers(words)), ["nsubj", "advmod"][w % 2]) for w in range(words)]
        tree = sentence(words, *(arc for arc in arcs if arc[0] != arc[1]))
        attended.append((tree, generator.random((3, words, words)).astype(np.float32)))
    rows = roles(attended, [(0, 2), (1, 0), (1, 3)], RANKS, SETTINGS)
    for relation in SETTINGS.relations:
        for head, found in enumerate(measured(rows, f"{relation} dependent-to-head")):
            hits, cases, best = slowly(attended, head, relation)
            assert found[:3] == pytest.approx((hits / cases, best / cases, cases))
            assert found[3] == (hits / cases - best / cases >= 0.1)
    assert len(rows) == 3 * (5 + 5 + 4 + 2)


def one_case_each(hits: int, sentences: int) -> list[tuple[Words, NDArray[np.float32]]]:
    """Two-word sentences; in the first `hits`, the second word looks at the first, as a -1 head does."""
    return [(sentence(2), looking([0, 0 if number < hits else 1])) for number in range(sentences)]


def binomial_quantiles(hits: int, cases: int) -> list[float]:
    """The 2.5 % and 97.5 % quantiles of a binomial distribution, as shares, from its formula."""
    share = hits / cases
    chances = [comb(cases, k) * share**k * (1 - share) ** (cases - k) for k in range(cases + 1)]
    return [float(np.searchsorted(np.cumsum(chances), tail)) / cases for tail in (0.025, 0.975)]


@pytest.mark.parametrize(("hits", "cases"), [(30, 40), (57, 60), (5, 90)])
def test_the_interval_of_sentences_of_one_case_each_is_that_of_a_binomial(hits: int, cases: int) -> None:
    changed = SETTINGS.model_copy(update={"bootstrap": 2000})
    row = next(row for row in roles(one_case_each(hits, cases), [(0, 0)], RANKS, changed) if row["name"] == "-1")
    assert [row["low"], row["high"]] == pytest.approx(binomial_quantiles(hits, cases), abs=1.01 / cases)
    assert row["excess_low"] == pytest.approx(float(str(row["low"])) - 0.9)
    assert row["excess_high"] == pytest.approx(float(str(row["high"])) - 0.9)


def test_a_role_is_held_only_where_the_interval_supports_what_the_accuracy_reaches() -> None:
    for repeats, holds in [(1, 0), (40, 1)]:
        rows = roles(one_case_each(19, 20) * repeats, [(0, 0)], RANKS, SETTINGS)
        assert measured(rows, "-1", "reaches") == [(0.95, None, 20 * repeats, 1)]
        assert measured(rows, "-1") == [(0.95, None, 20 * repeats, holds)]
        assert labels(rows) == {(0, 0): {"positional"} if holds else set()}


def test_the_baseline_is_found_anew_in_every_draw() -> None:
    """The head hits what the best offset hits, so in any draw it lies the whole margin below its threshold."""
    attended = margin_case([1] * 32 + [-2] * 8, 32)
    rows = roles(attended, [(0, 0)], RANKS, SETTINGS)
    for name in ("nsubj dependent-to-head", "nsubj head-to-dependent"):
        assert measured(rows, name)[0][1] == 0.8
    row = next(row for row in rows if row["name"] == "nsubj dependent-to-head")
    assert [row["excess_low"], row["excess_high"]] == pytest.approx([-0.1, -0.1])
    assert float(str(row["low"])) < 0.75 < 0.8 < float(str(row["high"]))


def test_a_measure_that_gives_no_role_has_an_interval_but_no_excess() -> None:
    words = sentence(5, subwords=[4, 19, 1, 17, 19])
    rows = roles([(words, looking([1, 4, 1, 3, 0]))] * 3, [(0, 0)], RANKS, SETTINGS)
    rarest = next(row for row in rows if row["name"] == "rarest")
    assert (rarest["low"], rarest["high"], rarest["excess_low"], rarest["excess_high"]) == (0.6, 0.6, None, None)
    two = next(row for row in rows if row["name"] == "one of two rarest")
    assert (two["low"], two["excess_low"], two["excess_high"]) == (0.8, pytest.approx(0.3), pytest.approx(0.3))
    assert rarest["reaches"] == rarest["holds"] == 0


def test_draws_without_a_case_do_not_spoil_the_interval() -> None:
    lonely = [(sentence(3, (0, 2, "nsubj")), looking([2, 2, 2])), *[(sentence(3), looking([0, 0, 0]))] * 9]
    rows = roles(lonely, [(0, 0)], RANKS, SETTINGS)
    row = next(row for row in rows if row["name"] == "nsubj dependent-to-head")
    assert (row["cases"], row["low"], row["high"]) == (1, 1.0, 1.0)


def test_the_same_sentences_give_the_same_intervals_whatever_other_heads_there_are() -> None:
    alone, beside = looking([1, 0]), looking([1, 1])
    one = roles([(sentence(2), alone), (sentence(2), beside)] * 9, [(0, 4)], RANKS, SETTINGS)
    both = [(sentence(2), np.concatenate([beside, each])) for each in (alone, beside)] * 9
    assert [row for row in roles(both, [(0, 1), (0, 4)], RANKS, SETTINGS) if row["head"] == 4] == one


def test_a_model_without_heads_has_no_rows() -> None:
    assert roles([], [], RANKS, SETTINGS) == []

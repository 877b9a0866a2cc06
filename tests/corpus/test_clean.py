"""Each filter on pairs made by hand, with numbers counted by hand; the Bloom filter against a plain set."""

import random
import string
from collections import Counter
from fractions import Fraction

import pytest

from heads.config.corpora import Cleaning
from heads.corpus.clean import (
    FILTERS,
    HeldSentences,
    HoldOut,
    clean,
    evenly,
    failed_filter,
    filter_table,
    fingerprint,
    normalise,
)
from heads.corpus.distinct import SeenBefore, digest
from heads.corpus.pairs import RawPair

LIMITS = Cleaning(max_words=6, max_length_ratio=3.0, min_overlap=0.9, leakage="either")


def raw(source: str, target: str, overlap: float | None = 1.0) -> RawPair:
    return RawPair(source, target, "hand", 1, overlap)


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (raw("a cat", "кот"), None),
        (raw(" \t", "кот"), "empty"),
        (raw("a cat", "\u00a0"), "empty"),
        (raw("a\x07cat", "кот"), "control"),
        (raw("a cat", "ко\ufffdт"), "control"),
        (raw("a cat", "к\x85от"), "control"),
        (raw("a\tcat\r", "кот"), None),
        (raw("1 2 3 4 5 6", "1 2"), None),
        (raw("1 2 3 4 5 6 7", "1 2 3 4"), "max_words"),
        (raw("1 2", "1 2 3 4 5 6 7"), "max_words"),
        (raw("1 2 3 4", "1"), "length_ratio"),
        (raw("我们都喜欢猫咪。", "we like cats"), None),
        (raw("my old cat sleeps here", "我的老猫在这里睡觉"), None),
        (raw("cats", "我的老猫在这里睡觉"), "length_ratio"),
        (raw("my old cat sleeps", "我的老猫在这里睡觉因为天气冷"), "max_words"),
        (raw("this cat is nice", "แมวตัวนี้น่ารัก"), None),
        (raw("1", "1 2 3"), None),
        (raw("a cat", "кот", 0.899), "min_overlap"),
        (raw("a cat", "кот", 0.9), None),
        (raw("a cat", "кот", None), "min_overlap"),
    ],
)
def test_a_pair_is_taken_out_by_the_first_filter_it_fails(pair: RawPair, expected: str | None) -> None:
    assert failed_filter(pair, normalise(pair.source), normalise(pair.target), LIMITS) == expected


def test_without_min_overlap_a_pair_needs_none() -> None:
    assert failed_filter(raw("a", "b", None), "a", "b", Cleaning(max_words=6, max_length_ratio=3.0)) is None


def test_text_is_composed_and_its_spaces_are_single() -> None:
    assert normalise("  cafe\u0301 \u2009 \tau\u3000lait\r") == "café au lait"


def test_only_an_exact_pair_is_a_duplicate_and_the_counts_add_up() -> None:
    pairs = [raw("a cat", "кот"), raw("a  cat", "кот"), raw("a cat", "кошка"), raw("", "x"), raw("1 2 3 4", "1")]
    tally: Counter[str] = Counter()
    kept = list(clean([*pairs, raw("A cat", "кот")], LIMITS, SeenBefore(1000), tally))
    assert kept == [("a cat", "кот"), ("a cat", "кошка"), ("A cat", "кот")]
    assert tally == {"read": 6, "duplicate": 1, "empty": 1, "length_ratio": 1}


def test_a_leak_is_found_on_either_side_through_case_and_spaces() -> None:
    held = HeldSentences()
    assert [*held.remember([("The cat sleeps.", "Кот спит.")])] == [("The cat sleeps.", "Кот спит.")]
    assert held.leaks("the CAT  sleeps.", "anything", "either") and held.leaks("anything", "КОТ спит.", "either")
    assert held.leaks("the cat sleeps.", "anything", "source") and not held.leaks("anything", "Кот спит.", "source")
    assert not held.leaks("Кот спит.", "The cat sleeps.", "either")


def test_held_out_pairs_are_those_of_the_smallest_fingerprints_whatever_the_order() -> None:
    pairs = [(f"sentence {number % 40}", f"предложение {number}") for number in range(120)]
    sources = sorted({source for source, _ in pairs}, key=fingerprint)[:7]
    for stream in (pairs, sorted(pairs, key=lambda pair: (int(pair[1].split()[1]) % 11, pair[1]))):
        chooser = HoldOut(7)
        for pair in stream:
            chooser.offer(*pair)
        first = dict(reversed(stream))
        assert chooser.pairs() == [(source, first[source]) for source in sources]


@pytest.mark.parametrize(("available", "limit"), [(10, 3), (7, 7), (5, 9), (1000, 999), (11, 1)])
def test_a_limit_is_met_exactly_and_taken_evenly(available: int, limit: int) -> None:
    pairs = [(str(number), "x") for number in range(available)]
    kept = [int(source) for source, _ in evenly(iter(pairs), available, limit)]
    assert len(kept) == min(available, limit) == len(set(kept))
    for end in range(1, available + 1):
        share = Fraction(min(limit, available) * end, available)
        assert abs(sum(number < end for number in kept) - share) < 1


def test_the_table_of_filters_goes_on_from_row_to_row() -> None:
    tallies = {"train": Counter(read=20, empty=5, max_words=3, limit=12), "dev": Counter(), "test": Counter()}
    rows = [row for row in filter_table(tallies, FILTERS) if row["split"] == "train"]
    assert [row["filter"] for row in rows] == list(FILTERS)
    counts = [(row["pairs_in"], row["pairs_removed"], row["pairs_left"]) for row in rows]
    assert counts == [(20, 5, 15), (15, 0, 15), (15, 3, 12), *[(12, 0, 12)] * 4, (12, 12, 0)]
    assert rows[0]["share_removed"] == 0.25


def test_several_processes_keep_the_same_pairs_in_the_same_order_with_the_same_counts() -> None:
    pairs = [raw(f"word {i % 2520}" if i % 7 else "", "слово " * (1 + i % 9)) for i in range(5000)]
    results = []
    for workers in (1, 2):
        tally: Counter[str] = Counter()
        results.append((list(clean(pairs, LIMITS, SeenBefore(10_000), tally, workers)), tally))
    assert results[0] == results[1]
    kept, tally = results[0]
    assert len(kept) == 2520 * 6 // 7 * 6 // 9
    again = [i for i in range(2520, 5000) if i % 7 and i % 9 < 6]
    assert tally == {"read": 5000, "empty": 715, "duplicate": len(again), "max_words": 4285 - len(again) - len(kept)}


def random_texts(count: int, seed: int) -> list[str]:
    """Distinct random words."""
    generator = random.Random(seed)
    texts: set[str] = set()
    while len(texts) < count:
        texts.add("".join(generator.choices(string.ascii_lowercase + "жщё", k=12)))
    return sorted(texts)


def test_old_texts_are_never_called_new_and_new_ones_old_no_more_often_than_the_stated_rate() -> None:
    texts = random_texts(24_000, 5)
    seen = SeenBefore(20_000, 0.02)
    wrong_while_filling = sum(not seen.add(text) for text in texts[:20_000])
    assert not any(seen.add(text) for text in texts[:20_000])
    wrong_when_full = sum(not seen.add(text) for text in texts[20_000:])
    assert wrong_while_filling <= 0.02 * 20_000
    assert 0.01 * 4_000 < wrong_when_full < 0.035 * 4_000


def test_memory_follows_from_the_statement_alone() -> None:
    seen = SeenBefore(1_000_000, 0.001)
    before = len(seen._bits)
    for text in random_texts(1_000, 7):
        seen.add(text)
    assert len(seen._bits) == before
    assert 14.3 < 8 * before / 1_000_000 < 14.5  # bits per item: log2(1000) / ln 2 = 14.38


@pytest.mark.parametrize(("items", "rate"), [(0, 0.1), (5, 0.0), (5, 1.0)])
def test_impossible_sizes_are_refused(items: int, rate: float) -> None:
    with pytest.raises(ValueError, match="need items"):
        SeenBefore(items, rate)


@pytest.mark.parametrize("size", [1, 7, 300])
def test_texts_added_many_at_once_are_judged_as_if_one_by_one(size: int) -> None:
    texts = [f"text {(i * i) % 211}" for i in range(600)]
    # So small that many new texts are taken for old ones.
    together, alone = SeenBefore(60, 0.2), SeenBefore(60, 0.2)
    chunks = [texts[start : start + size] for start in range(0, len(texts), size)]
    judged = [new for chunk in chunks for new in together.add_digests([digest(text) for text in chunk])]
    assert together.add_digests([]) == []
    assert judged == [alone.add(text) for text in texts]
    assert 20 < sum(judged) < len(set(texts)), "some wrong, not all"

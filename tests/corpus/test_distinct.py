"""The Bloom filter against a plain set."""

from __future__ import annotations

import random
import string

import pytest

from heads.corpus.distinct import SeenBefore, digest


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

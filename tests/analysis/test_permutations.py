"""Whether BLEU differs: p-values against all permutations of the text, and as often as they should on equal systems."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

from heads.analysis.metrics import paired_permutations, swapped_p

REFERENCES = [f"the {i} cats sat on mat number {i * i} and slept" for i in range(40)]


def worsened(lines: list[str], share: float, seed: int) -> list[str]:
    """The lines with some of their words replaced."""
    draw = np.random.default_rng(seed)
    return [" ".join("dog" if draw.random() < share else word for word in line.split()) for line in lines]


def of_all_permutations(one: list[str], other: list[str], references: list[str]) -> float:
    """The p-value from sacrebleu scores of all ways to swap the lines of two texts."""

    def difference(swaps: tuple[bool, ...]) -> float:
        rows = [(b, a) if swap else (a, b) for a, b, swap in zip(one, other, swaps, strict=True)]
        scores = [BLEU().corpus_score(list(text), [references]).score for text in zip(*rows, strict=True)]
        return abs(float(scores[1]) - float(scores[0]))

    observed, *others = [difference(swaps) for swaps in product((False, True), repeat=len(one))]
    return float(np.mean([1, *(value > observed - 1e-9 for value in others)]))


@pytest.mark.parametrize(("seed", "share"), [(2, 0.3), (3, 0.2), (4, 0.3)])
def test_p_values_are_those_of_all_permutations_whichever_of_the_two_is_better(seed: int, share: float) -> None:
    references = REFERENCES[20:28]
    one, other = worsened(references, 0.15, 1), worsened(references, share, seed)
    (own, alone), (bleu, p_value) = paired_permutations(one, [other], references, 20000)
    expected = [BLEU().corpus_score(text, [references]).score for text in (one, other)]
    assert [own, bleu] == pytest.approx(expected) and alone == 1
    exact = of_all_permutations(one, other, references)
    assert 0.01 < exact < 0.9
    assert p_value == pytest.approx(exact, abs=4 * (exact * (1 - exact) / 20000) ** 0.5)
    assert paired_permutations(other, [one], references, 20000)[1][1] == pytest.approx(p_value, abs=0.02)


def test_a_single_changed_sentence_is_no_discovery_however_much_it_changes() -> None:
    changed = [*REFERENCES[:-1], "dog"]
    assert paired_permutations(REFERENCES, [changed], REFERENCES, 200)[1][1] == 1


def test_a_system_equal_to_the_baseline_is_no_discovery_and_a_much_worse_one_is() -> None:
    baseline = worsened(REFERENCES, 0.1, 1)
    pairs = paired_permutations(baseline, [list(baseline), worsened(baseline, 0.5, 3)], REFERENCES, 200)
    assert pairs[0] == pairs[1]
    assert pairs[1][1] == 1
    assert pairs[2][1] == pytest.approx(1 / 201)


def test_p_values_are_the_same_every_time_whatever_else_is_compared() -> None:
    baseline, other, third = (worsened(REFERENCES, share, seed) for share, seed in ((0.1, 1), (0.15, 2), (0.2, 3)))
    first = paired_permutations(baseline, [other, third], REFERENCES, 200)
    assert paired_permutations(baseline, [third, other], REFERENCES, 200) == [first[0], first[2], first[1]]


def made(draw: np.random.Generator, words: NDArray[np.int64], quality: float) -> NDArray[np.float32]:
    """BLEU counts [S, C] of translations whose references have `words` [S] words; n-grams are right by chance."""
    said = np.maximum(4, words + draw.integers(-2, 3, len(words)))
    total = np.stack([said - order for order in range(4)], 1)
    right = draw.binomial(total, quality ** np.arange(1, 5))
    return np.concatenate([said[:, None], words[:, None], right, total], 1).astype(np.float32)


def test_of_systems_that_are_alike_as_many_are_told_to_differ_as_the_threshold_says() -> None:
    """Pairs of texts that mix the same two systems; a coin toss per sentence assigns the translations."""
    draw, p_values = np.random.default_rng(5), []
    for number in range(3000):
        words = draw.integers(5, 26, (40, 90)[number % 2])
        better, worse = made(draw, words, 0.7), made(draw, words, 0.5)
        coins = draw.integers(2, size=(len(words), 1)) == 1
        p_values.append(swapped_p(np.where(coins, better, worse), np.where(coins, worse, better), 1000))
    for level in (0.01, 0.05):
        share = float((np.array(p_values) < level).mean())
        assert share == pytest.approx(level, abs=3.3 * (level * (1 - level) / 3000) ** 0.5)

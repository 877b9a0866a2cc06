"""What chance alone would do, against shuffling and drawing again, and against counting every case."""

import random
from itertools import combinations, permutations

import numpy as np
import pytest

from heads.tables.chances import (
    all_of_kind,
    best_exceptions,
    every_group_drawn,
    shares_drawn,
    shuffled_p,
    tops_differ,
)
from heads.tables.claims_heads import AGREES, EXCEPTIONS


def slow_rho(a: list[list[float]], b: list[list[float]]) -> float:
    """Ranks counted in each layer, centred there, and correlated over all layers."""
    x, y = ([sum(v < w for v in layer) - (len(layer) - 1) / 2 for layer in some for w in layer] for some in (a, b))
    return sum(i * j for i, j in zip(x, y, strict=True)) / sum(i * i for i in x)


@pytest.mark.parametrize("sizes", [(4, 4, 4), (2, 5, 3)])
def test_chance_of_the_claims_about_relevance_is_that_of_unrelated_measures(sizes: tuple[int, ...]) -> None:
    rng, times = random.Random(8), 1500
    differ, agree, first = 0, 0, 0
    for _ in range(times):
        a, b = ([[rng.random() for _ in range(size)] for size in sizes] for _ in range(2))
        tops = [[layer.index(max(layer)) for layer in some] for some in (a, b)]
        differ += sum(i != j for i, j in zip(*tops, strict=True)) <= EXCEPTIONS
        without = {}
        for layer, size in enumerate(sizes):
            for head in range(size):
                fewer = [[v for j, v in enumerate(row) if (i, j) != (layer, head)] for some in (a, b)
                         for i, row in enumerate(some)]  # fmt: skip
                without[layer, head] = round(slow_rho(fewer[: len(sizes)], fewer[len(sizes) :]), 9)
        best = max(without, key=lambda place: without[place])
        agree += without[best] >= AGREES
        first += without[best] >= AGREES and best == (0, tops[0][0]) and tops[0][0] != tops[1][0]
    rhos, is_first = best_exceptions(sizes)
    agreed = rhos >= AGREES
    expected = [tops_differ(sizes, EXCEPTIONS), agreed.mean(), (agreed & is_first).mean()]
    np.testing.assert_allclose(np.array([differ, agree, first]) / times, expected, atol=0.035)


def test_three_layers_of_four_heads_are_too_few_to_tell_and_six_of_eight_are_not() -> None:
    assert tops_differ((4, 4, 4), 1) == pytest.approx(1 / 64 + 3 * 3 / 64)
    assert (best_exceptions((4, 4, 4))[0] >= 0.5).mean() == pytest.approx(0.28, abs=0.02)
    assert tops_differ((8,) * 6, 1) < 0.001 and (best_exceptions((8,) * 6)[0] >= 0.5).mean() < 0.01


def test_heads_that_are_drawn_at_random_are_counted_as_by_trying_every_draw() -> None:
    draws = [set(draw) for draw in combinations(range(7), 3)]
    groups = [{0, 1}, {1, 2, 3}, {6}]
    assert all_of_kind(3, 5, 7) == pytest.approx(np.mean([draw <= set(range(5)) for draw in draws]))
    assert every_group_drawn(groups, 3, 7) == pytest.approx(np.mean([all(g & d for g in groups) for d in draws]))
    assert every_group_drawn([{2}], 7, 7) == 1
    assert every_group_drawn([{2}], 0, 7) == 0


def test_p_of_shuffled_labels_is_near_that_of_all_orders_on_the_side_of_large_numbers() -> None:
    """Six heads in three models; of the heads labelled 1, the first two models keep all and the third keeps two."""
    live = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 1], [1, 1, 0], [0, 1, 0]])
    labels = np.array([0, 1, 0, 1, 1, 0])

    def difference(shares: np.ndarray) -> np.ndarray:
        return np.asarray((shares[..., 1, :] - shares[..., 0, :]).mean(-1))

    def slow(of: tuple[int, ...]) -> float:
        left = {label: [sum(row) for row, own in zip(live, of, strict=True) if own == label] for label in (0, 1)}
        return float(np.mean(left[1]) - np.mean(left[0])) / 3

    every = [slow(order) for order in permutations(labels.tolist())]
    exact = np.mean([value >= slow(tuple(labels)) - 1e-9 for value in every])
    assert exact == pytest.approx(1 / 20)
    assert shuffled_p(difference, live, labels) == pytest.approx(exact, abs=0.02)
    assert shuffled_p(lambda shares: -difference(shares), live, labels) == pytest.approx(1)
    assert shuffled_p(difference, live[:2], labels[:2]) == pytest.approx(0.5, abs=0.04)
    assert shuffled_p(lambda shares: shares[..., 0, 0] * 0 - np.arange(len(shares)), live, labels) == 1 / 2000


def test_shares_of_drawn_heads_begin_with_those_of_all_and_spread_as_shares_do() -> None:
    labels = np.repeat([0, 1], [40, 60])
    live = np.stack([np.arange(100) % 2, np.arange(100) < 40], 1).astype(int)
    shares = shares_drawn(live, labels)
    np.testing.assert_allclose(shares[0], [[0.5, 1], [0.5, 0]])
    assert shares[1:, 1, 0].std() == pytest.approx(np.sqrt(0.25 / 60), rel=0.1)
    assert (shares[:, 0, 1] == 1).all() and (shares[:, 1, 1] == 0).all()

"""Which heads are kept, against brute force over all subsets and against sets known beforehand."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest

from heads.base.files import UserError
from heads.model.shape import Head
from heads.pruning.criteria import keep_optimal
from heads.pruning.selection import keep_best, random_scores, steps

SCORES: dict[Head, float] = {
    ("dec_enc", 0, 0): 5.0,
    ("enc_self", 1, 0): 2.0,
    ("enc_self", 0, 1): 2.0,
    ("dec_self", 0, 0): 2.0,
    ("dec_enc", 0, 1): -1.0,
    ("enc_self", 0, 0): 0.5,
    ("dec_self", 1, 3): 3.0,
}


def test_the_best_heads_are_kept_and_among_equals_the_first_of_the_tables() -> None:
    assert keep_best(SCORES, 4) == [("enc_self", 0, 1), ("enc_self", 1, 0), ("dec_self", 1, 3), ("dec_enc", 0, 0)]
    assert keep_best(dict(reversed(SCORES.items())), 4) == keep_best(SCORES, 4)


def test_random_heads_are_each_kept_equally_often_and_the_same_for_the_same_seed() -> None:
    draws = 3000
    kept = Counter(head for seed in range(draws) for head in keep_best(random_scores(list(SCORES), seed), 3))
    expected, error = draws * 3 / 7, (draws * 3 / 7 * 4 / 7) ** 0.5
    assert all(abs(kept[head] - expected) < 5 * error for head in SCORES)
    assert random_scores(list(SCORES), 8) == random_scores(list(reversed(SCORES)), 8)


@pytest.mark.parametrize("budget", [-1, 8])
def test_a_budget_that_no_choice_has_is_an_error_of_the_user(budget: int) -> None:
    with pytest.raises(UserError, match="7"):
        keep_best(SCORES, budget)


def test_a_score_that_is_no_number_is_an_error() -> None:
    with pytest.raises(ValueError, match="nan"):
        keep_best({**SCORES, ("dec_enc", 1, 1): float("nan")}, 2)


def test_steps_mask_the_worst_heads_first_each_set_inside_the_next_up_to_all() -> None:
    masked = steps(SCORES, 0.2)
    assert [len(heads) for heads in masked] == [1, 3, 4, 6, 7]  # 1.4, 2.8, 4.2, 5.6 and 7 of 7
    assert masked[1] == [("dec_enc", 0, 1), ("enc_self", 0, 0), ("dec_self", 0, 0)]
    assert all(set(fewer) < set(more) for fewer, more in pairwise(masked))
    for heads in masked:
        assert set(keep_best(SCORES, 7 - len(heads))) == set(SCORES) - set(heads)


def test_ten_steps_of_144_heads_have_the_numbers_of_heads_of_a_tenth_each() -> None:
    heads = {("enc_self", i, j): float(i * 24 + j) for i in range(6) for j in range(24)}
    assert [len(masked) for masked in steps(heads)] == [14, 29, 43, 58, 72, 86, 101, 115, 130, 144]


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, float("nan")])
def test_a_share_outside_zero_to_one_is_an_error_of_the_user(share: float) -> None:
    with pytest.raises(UserError, match="share"):
        steps(SCORES, share)


@pytest.mark.parametrize("seed", range(12))
def test_the_optimal_choice_has_the_largest_sum_of_all_subsets_that_hold_the_limits(seed: int) -> None:
    draw = np.random.default_rng(seed)
    scores = {head: float(draw.normal(1, 1)) for head in SCORES}
    least = {("enc_self", 0): 1, ("dec_enc", 0): 1}
    allowed = [
        set(kept)
        for size in range(5)
        for kept in combinations(SCORES, size)
        if all(sum(head[:2] == layer for head in kept) >= number for layer, number in least.items())
    ]
    best = max(allowed, key=lambda kept: sum(scores[head] for head in kept))
    assert set(keep_optimal(scores, 4, least)) == best


def test_with_nothing_but_a_number_of_heads_the_optimum_is_the_best_heads_also_among_equals() -> None:
    assert keep_optimal(SCORES, 4, {}) == keep_best(SCORES, 4)
    for seed in range(5):
        equal = {head: float(np.random.default_rng([seed, i]).integers(1, 3)) for i, head in enumerate(SCORES)}
        assert keep_optimal(equal, 4, {}) == keep_best(equal, 4)


def test_a_head_worth_less_than_nothing_is_left_out_even_where_there_is_room() -> None:
    assert set(SCORES) - set(keep_optimal(SCORES, 7, {})) == {("dec_enc", 0, 1)}


def test_a_least_number_of_heads_in_a_layer_is_kept_though_they_are_the_worst() -> None:
    kept = keep_optimal(SCORES, 4, {("enc_self", 0): 2, ("dec_enc", 0): 2})
    assert set(kept) == {head for head in SCORES if head[:2] in {("enc_self", 0), ("dec_enc", 0)}}


def test_tiny_scores_are_told_apart_like_large_ones() -> None:
    small = {head: score * 1e-9 for head, score in SCORES.items()}
    assert keep_optimal(small, 3, {}) == keep_optimal(SCORES, 3, {})


def test_limits_that_no_choice_holds_are_named_in_one_sentence() -> None:
    with pytest.raises(UserError) as error:
        keep_optimal(SCORES, 1, {("enc_self", 0): 2})
    sentence = str(error.value)
    assert "has at most 1 heads and" in sentence and "at least 2 heads in enc_self layer 0" in sentence
    assert sentence.count(". ") == 0 and sentence.endswith(".")


def test_many_layers_that_must_keep_as_many_heads_are_counted_and_not_listed() -> None:
    least = dict.fromkeys(((kind, layer) for kind in ("enc_self", "dec_enc") for layer in range(9)), 1)
    scores = {(kind, layer, head): float(head) for kind, layer in least for head in range(3)}
    with pytest.raises(UserError) as error:
        keep_optimal(scores, 4, {**least, ("dec_enc", 3): 2})
    sentence = str(error.value)
    assert "at least 1 head in each of 17 layers and at least 2 heads in dec_enc layer 3" in sentence
    assert sentence.count("layer") == 2

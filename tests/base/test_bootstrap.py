"""Bootstrap samples of sentences against their expected moments."""

from collections.abc import Callable

import numpy as np
import pytest

from heads.base.bootstrap import halved_sums, interval, resampled_sums


def test_sums_of_draws_have_the_mean_and_covariance_of_drawing_with_replacement() -> None:
    counts = np.random.default_rng(4).integers(0, 9, (23, 3)).astype(np.float32)
    counts[:, 2] = 7 - counts[:, 0]
    sums = resampled_sums(counts, 6000)
    np.testing.assert_allclose(sums.mean(0), counts.sum(0), rtol=0.01)
    expected = 23 * np.cov(counts.T.astype(float), bias=True)
    np.testing.assert_allclose(np.cov(sums.T), expected, rtol=0.08, atol=0.03 * expected.max())
    np.testing.assert_allclose(sums[:, 0] + sums[:, 2], 7 * 23)


def test_a_coin_for_each_sentence_makes_every_set_of_them_as_likely() -> None:
    counts = np.array([[1, 0], [2, 3], [4, 0], [8, 3]], np.float32)
    sums = halved_sums(counts, 8000)
    often = np.bincount(sums[:, 0].astype(int), minlength=16)
    assert len(often) == 16
    np.testing.assert_allclose(often, 500, atol=4 * 500**0.5)
    taken = sums[:, 0].astype(int)
    np.testing.assert_array_equal(sums[:, 1], 3 * ((taken >> 1 & 1) + (taken >> 3 & 1)))


@pytest.mark.parametrize("drawn_sums", [resampled_sums, halved_sums])
def test_memory_that_holds_fewer_weights_gives_the_same_sums(
    monkeypatch: pytest.MonkeyPatch, drawn_sums: Callable[..., np.ndarray]
) -> None:
    counts = np.arange(22, dtype=np.float32).reshape(11, 2)
    at_once = drawn_sums(counts, 9)
    monkeypatch.setattr("heads.base.bootstrap.WEIGHTS_AT_ONCE", 30)
    np.testing.assert_array_equal(drawn_sums(counts, 9), at_once)


def test_no_sentences_have_no_counts() -> None:
    assert resampled_sums(np.zeros((0, 4), np.float32), 3).tolist() == [[0] * 4] * 3


def test_the_interval_leaves_out_a_fortieth_at_each_end_and_what_is_no_value() -> None:
    values = np.random.default_rng(1).permutation(np.arange(401.0))
    several = np.stack([values, np.where(values > 200, np.nan, values), np.full(401, np.nan)], 1)
    low, high = interval(several)
    assert (low[0], high[0]) == (10, 390)
    assert (low[1], high[1]) == (5, 195)
    assert np.isnan([low[2], high[2]]).all()

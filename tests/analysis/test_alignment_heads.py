"""Alignment heads against hand-made maps, error rates worked out on paper, and a literal version of the definition."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from heads.analysis.alignment_heads import Gold, agreement, aligned, alignment_heads, error_rate, made_at, offset_links
from heads.analysis.attention_weights import attend_to_source
from heads.base.columns import ALIGNMENT_COLUMNS
from heads.config.analyses import AlignmentHeadsSettings
from heads.model.attention import Trace
from heads.model.shape import full_heads
from heads.model.transformer import Transformer
from heads.syntax.words import Words
from heads.text.special_ids import BOS, EOS

SETTINGS = AlignmentHeadsSettings(bootstrap=100)


def words(sizes: list[int], first: int = 4) -> Words:
    """A sentence whose words have the given numbers of subwords."""
    member = np.repeat(np.eye(len(sizes)), sizes, axis=1)
    subwords = np.arange(first, first + sum(sizes), dtype=np.int32)
    return Words(0, tuple("abcdefgh"[: len(sizes)]), (), subwords, member, len(sizes))


def gold(source: list[int], target: list[int], *links: tuple[int, int]) -> Gold:
    linked = np.zeros((len(source), len(target)), bool)
    for link in links:
        linked[link] = True
    return Gold(words(source), words(target), linked)


def looking_at(places: list[int], keys: int) -> NDArray[np.float64]:
    """One head whose steps look at these source subwords; -1 looks at EOS, which is not among the keys."""
    return np.array([[[0.9 if key == place else 0.01 * (place >= 0) for key in range(keys)] for place in places]])


MAP = np.array([[[0.1, 0.6, 0.2, 0.1], [0.3, 0.1, 0.5, 0.1], [0.2, 0.2, 0.1, 0.5], [0.7, 0.1, 0.1, 0.1],
                 [0.1, 0.1, 0.1, 0.6]]])  # fmt: skip
"""Four subwords on each side, each a word, and the step that outputs EOS."""


def test_a_map_of_four_by_four_is_aligned_by_the_step_that_gives_a_word_or_by_the_one_that_reads_it() -> None:
    pair = gold([1] * 4, [1] * 4)
    assert aligned(MAP, pair, "output").tolist() == [[1, 2, 3, 0]]
    assert aligned(MAP, pair, "input").tolist() == [[2, 3, 0, 3]]


def test_a_source_word_gets_the_sum_of_its_subwords_and_a_target_word_the_mean_of_its_own() -> None:
    """Together, two subwords of source word two outweigh the largest subword; the mean of two steps decides."""
    pair = gold([1, 2, 1], [2, 1])
    weights = np.array([[[0.4, 0.3, 0.3, 0.0], [0.45, 0.25, 0.25, 0.0], [0.3, 0.1, 0.1, 0.5], [0.0, 0.0, 0.0, 1.0]]])
    assert aligned(weights, pair, "output").tolist() == [[1, 2]]
    lopsided = np.array([[[0.0, 0.2, 0.4, 0.4], [0.9, 0.0, 0.0, 0.1], [0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]])
    # The first word has two steps: one gives the words 0, 0.6, 0.4 and the other 0.9, 0, 0.1.
    assert aligned(lopsided, pair, "output").tolist() == [[0, -1]]
    assert aligned(lopsided, pair, "input").tolist() == [[0, 0]]


def test_links_that_are_made_and_found_are_counted_and_a_word_that_looks_nowhere_makes_none() -> None:
    linked = gold([1] * 3, [1] * 4, (0, 0), (2, 1), (1, 1), (2, 3)).linked
    hits, made = agreement(np.array([[0, 1, 2, -1], [0, 0, 0, 0], [2, 2, -1, 2]]), linked)
    assert hits.tolist() == [2, 1, 2]
    assert made.tolist() == [3, 4, 3]


def test_the_error_rate_is_that_of_och_and_ney_worked_out_by_hand() -> None:
    """A = {0-0, 1-1, 2-2} and S = {0-0, 2-1, 1-1, 2-3} share two links, so 1 - 4 / 7."""
    rate = error_rate(np.array([2.0, 0.0, 3.0, 0.0]), np.array([3.0, 2.0, 3.0, 0.0]), np.array([4.0, 1.0, 3.0, 0.0]))
    assert rate[:3] == pytest.approx([3 / 7, 1.0, 0.0])
    assert np.isnan(rate[3])


def test_an_offset_makes_a_link_wherever_both_ends_lie_in_the_pair() -> None:
    for source, target in ((3, 5), (5, 3), (4, 4), (1, 2)):
        for offset in range(-6, 7):
            ends = [(j + offset, j) for j in range(target) if 0 <= j + offset < source]
            assert made_at(offset, source, target) == len(ends), (offset, source, target)
    linked = gold([1] * 3, [1] * 4, (0, 0), (2, 2), (1, 2), (0, 3)).linked
    assert offset_links(linked) == {0: (2, 3), -1: (1, 3), -3: (1, 1)}


def rows_of(pairs: list[Gold], maps: list[NDArray[np.float64]], **changes: Any) -> list[dict[str, Any]]:
    heads = [(1, 3), (2, 0)][: len(maps[0])]
    return alignment_heads(enumerate(maps), pairs, heads, AlignmentHeadsSettings(bootstrap=100, **changes))


def test_a_head_and_the_best_offset_stand_side_by_side_with_what_they_are_counted_on() -> None:
    """Two hand-made pairs. Head A finds 0-0, 2-1 of 3 links, then 1-0 of 1; offset -1 finds only 0-1."""
    pairs = [gold([1, 1, 1], [1, 1], (0, 0), (2, 1), (0, 1)), gold([1, 1], [1, 1, 1], (1, 0))]
    first = np.concatenate([looking_at([0, 2, 1], 3), looking_at([1, 1, 1], 3)])
    second = np.concatenate([looking_at([1, -1, 0, 0], 2), looking_at([0, 0, 0, 0], 2)])
    rows = rows_of(pairs, [first, second])
    assert [(row["step"], row["layer"], row["head"]) for row in rows] == [
        ("output", 1, 3), ("output", 2, 0), ("input", 1, 3), ("input", 2, 0)]  # fmt: skip
    assert all(tuple(row) == ALIGNMENT_COLUMNS for row in rows)
    head, other, late, _ = rows
    # A makes 2 links in the first pair, 2 in the second (its middle step looks at EOS): 3 of 4 are right, 3 of 4 found.
    assert (head["precision"], head["recall"], head["aer"]) == pytest.approx((3 / 4, 3 / 4, 1 / 4))
    assert (other["precision"], other["recall"], other["aer"]) == pytest.approx((0, 0, 1))
    # As the step that reads a word: 2-0, 1-1; nothing, 0-1, 0-2, so 0 of 4.
    assert late["aer"] == pytest.approx(1)
    # Offsets: 0 makes 2 + 2 links and finds 1 of 4 (6/8); +1 makes 2 + 1 and finds 2 (3/7); -1 makes 1 + 2, finds 1.
    assert head["offset"] == 1
    assert head["offset_aer"] == pytest.approx(1 - 2 * 2 / (3 + 4))
    assert head["gain"] == pytest.approx(3 / 7 - 1 / 4)
    assert (head["links"], head["target_words"], head["pairs"]) == (4, 5, 2)


def test_intervals_are_of_pairs_drawn_again_with_the_best_offset_found_anew_in_each_draw() -> None:
    """Three pairs with one link each, at offsets 0, 0 and 1; a head finds only the first."""
    pairs = [gold([1, 1], [1], (0, 0)), gold([1, 1], [1], (0, 0)), gold([1, 1], [1], (1, 0))]
    (row, _) = rows_of(pairs, [looking_at([0, 0], 2), looking_at([1, 0], 2), looking_at([0, 0], 2)])
    assert row["aer"] == pytest.approx(2 / 3)
    assert (row["aer_low"], row["aer_high"]) == (0.0, 1.0)
    assert row["offset_aer"] == pytest.approx(1 / 3)
    # If only the third pair is drawn, offset 1 is right and the head wrong; if only the first, both are right.
    assert row["gain_low"] == -1.0
    assert row["gain_high"] <= 0.0
    # A head that always looks at the word's own position equals the best offset overall, but not in draws of pair 3.
    (row, _) = rows_of(pairs, [looking_at([0, 0], 2)] * 3)
    assert row["gain"] == row["gain_high"] == 0.0
    assert row["gain_low"] < -0.2


@pytest.mark.parametrize(("margin", "aligns"), [(0.3, 1), (0.4, 0)])
def test_a_head_aligns_where_the_interval_supports_the_margin(margin: float, aligns: int) -> None:
    """A head finds all crossed links of thirty pairs; the best offset has an error rate of a third in every draw."""
    pairs = [gold([1, 1], [1, 1], (1, 0), (0, 1))] * 30
    rows = rows_of(pairs, [looking_at([1, 0, 0], 2)] * 30, margin=margin)
    assert rows[0]["aer"] == 0.0
    assert rows[0]["offset_aer"] == pytest.approx(1 - 2 / 3)
    assert [row["aligns"] for row in rows] == [aligns, 0]


def test_steps_are_measured_in_the_order_of_the_settings() -> None:
    pairs, maps = [gold([1, 1], [1, 1], (1, 0), (0, 1))], [looking_at([1, 0, 0], 2)]
    assert [row["step"] for row in rows_of(pairs, maps, steps=("input", "output"))] == ["input", "output"]
    assert [row["step"] for row in rows_of(pairs, maps, steps=("input",))] == ["input"]


def test_a_model_without_such_heads_has_no_rows() -> None:
    assert alignment_heads([], [], [], SETTINGS) == []


def test_attention_is_of_each_pair_alone_under_its_reference_without_the_sources_end_sign(
    tiny_model: Callable[..., Transformer],
) -> None:
    live = {**full_heads(layers=2, heads=3), "dec_enc": ((0, 2), (1,))}
    model = tiny_model(live_heads=live, source_subwords=19, target_subwords=17)
    pairs = [(words([1, 2, 3]), words([2, 2], 5)), (words([1]), words([1, 4, 1], 6)), (words([3, 1], 7), words([1]))]
    for batch_tokens in (1, 1000):
        found = dict(attend_to_source(model, pairs, batch_tokens))
        assert set(found) == {0, 1, 2}
        for number, (source, target) in enumerate(pairs):
            trace: Trace = {}
            read = torch.tensor([[*source.subwords.tolist(), EOS]])
            model(read, torch.ones_like(read, dtype=torch.bool), torch.tensor([[BOS, *target.subwords.tolist()]]),
                  trace=trace)  # fmt: skip
            whole = torch.cat([trace["dec_enc.0.weights"], trace["dec_enc.1.weights"]], 1)[0]
            assert found[number].shape == (3, len(target.subwords) + 1, len(source.subwords))
            np.testing.assert_allclose(found[number], whole[..., :-1].detach(), atol=1e-6)


def test_nothing_comes_of_a_model_without_decoder_encoder_heads(tiny_model: Callable[..., Transformer]) -> None:
    model = tiny_model(live_heads={**full_heads(layers=2, heads=3), "dec_enc": ((), ())})
    assert list(attend_to_source(model, [(words([1, 2]), words([2]))], 10)) == []

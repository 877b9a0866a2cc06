"""Batches: every pair once an epoch, padded by the definition, about as large as asked for."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from heads.base.files import UserError
from heads.text.batches import MOST_PADDED, POOL_UPDATES, Batch, Pairs, batched, cut, make_batch, pad, pairs_of
from heads.text.special_ids import BOS, EOS, PAD
from heads.text.vocabulary import Tokens


def numbered(lengths: Sequence[int] | NDArray[np.integer]) -> Tokens:
    """Sentences of these lengths, whose ids count all subwords from 0."""
    return Tokens.of(np.arange(sum(lengths), dtype=np.int32), np.array(lengths, np.int64))


def test_a_batch_is_padded_masked_started_and_ended_by_the_definition() -> None:
    sources = [np.array([5, 6, 7], np.int32), np.array([], np.int32)]
    targets = [np.array([8], np.int32), np.array([9, 10], np.int32)]
    batch = make_batch(sources, targets)
    assert batch.source.tolist() == [[5, 6, 7, EOS], [EOS, PAD, PAD, PAD]]
    assert batch.source_mask.tolist() == [[True] * 4, [True, False, False, False]]
    assert batch.target_input.tolist() == [[BOS, 8, PAD], [BOS, 9, 10]]
    assert batch.target_output.tolist() == [[8, EOS, PAD], [9, 10, EOS]]
    assert batch.target_mask.tolist() == [[True, True, False], [True] * 3]


def test_rows_are_padded_to_the_longest_one() -> None:
    padded, mask = pad([np.array([7], np.int32), np.array([], np.int32), np.array([4, 5, 6], np.int32)])
    assert padded.tolist() == [[7, PAD, PAD], [PAD] * 3, [4, 5, 6]]
    assert mask.tolist() == [[True, False, False], [False] * 3, [True] * 3]


def test_a_batch_keeps_all_its_fields_on_the_way_to_a_device(tiny_batch: Batch) -> None:
    moved = tiny_batch.to(torch.device("cpu"))
    for name in ("source", "source_mask", "target_input", "target_output", "target_mask"):
        torch.testing.assert_close(getattr(moved, name), getattr(tiny_batch, name), rtol=0, atol=0)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(lengths=st.lists(st.integers(0, 12), max_size=40), tokens=st.integers(1, 30))
def test_cutting_keeps_the_order_and_the_size(lengths: list[int], tokens: int) -> None:
    members = np.arange(len(lengths))[::-1]
    sizes = np.array(lengths, np.int64)
    subwords = cut(members, sizes, tokens)
    assert [member for subword in subwords for member in subword] == list(members)
    longest = max(lengths, default=0) + 1
    for subword in subwords:
        assert 0 < sum(lengths[i] + 1 for i in subword) < 1.5 * tokens + longest
    assert len(subwords) <= max(1.0, sum(n + 1 for n in lengths) / tokens + 0.5)


@pytest.mark.parametrize(
    ("lengths", "tokens", "runs"),
    [([3, 3, 3, 3, 0], 16, [5]), ([3] * 9, 16, [4, 5]), ([1, 1, 1, 1, 9], 4, [2, 2, 1])],
    ids=["a little more", "two", "exactly full"],
)
def test_runs_are_cut_where_they_are_full_and_not_into_a_full_one_and_a_crumb(
    lengths: list[int], tokens: int, runs: list[int]
) -> None:
    assert [len(run) for run in cut(np.arange(len(lengths)), np.array(lengths), tokens)] == runs


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    lengths=st.lists(st.one_of(st.integers(0, 3), st.integers(20, 60)), min_size=1, max_size=40),
    tokens=st.integers(1, 50),
    wider=st.integers(0, 5),
)
def test_one_long_sentence_makes_no_batch_large_by_padding(lengths: list[int], tokens: int, wider: int) -> None:
    sizes = np.array(lengths, np.int64)
    members, widths = np.argsort(sizes, kind="stable"), sizes + wider * (sizes % 2)
    runs = [*batched(members, sizes, tokens, widths)]
    assert [member for run in runs for member in run] == members.tolist()
    for run in runs:
        assert len(run) == 1 or len(run) * (int(widths[run].max()) + 1) <= MOST_PADDED * tokens


def test_batches_of_sentences_of_similar_length_are_those_of_cut() -> None:
    lengths = np.sort(np.random.default_rng(1).integers(20, 35, 300))
    members = np.arange(300)
    for run, same in zip(batched(members, lengths, 400), cut(members, lengths, 400), strict=True):
        assert run.tolist() == same.tolist()


@pytest.mark.parametrize("epoch", [0, 1, 5])
def test_an_epoch_holds_every_pair_exactly_once(digit_pairs: Callable[..., Pairs], epoch: int) -> None:
    pairs = digit_pairs(count=300)
    updates = pairs.epoch(6, seed=4, epoch=epoch)
    assert len(updates) > POOL_UPDATES, "more than one pool"
    assert sorted(np.concatenate(updates)) == list(range(300))


def test_updates_hold_about_the_tokens_asked_for(digit_pairs: Callable[..., Pairs]) -> None:
    pairs = digit_pairs(count=400)
    sizes = [int((pairs.source.lengths[update] + 1).sum()) for update in pairs.epoch(50, seed=4, epoch=0)]
    assert max(sizes) < 50 + 7
    assert 40 < np.mean(sizes) <= 50 + 7
    assert sum(size < 50 - 7 for size in sizes) <= 1, "only the last of the pool may be small"


def test_the_same_seed_gives_the_same_epoch_and_others_give_others(digit_pairs: Callable[..., Pairs]) -> None:
    pairs = digit_pairs(count=100)

    def order(seed: int, epoch: int) -> list[list[int]]:
        return [update.tolist() for update in pairs.epoch(40, seed, epoch)]

    assert order(1, 0) == order(1, 0)
    assert len({str(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}) == 4


def test_sentences_of_one_update_are_of_similar_length(digit_pairs: Callable[..., Pairs]) -> None:
    pairs = digit_pairs(count=400, longest=20)
    spread = [np.ptp(pairs.source.lengths[update]) for update in pairs.epoch(100, seed=4, epoch=0)]
    assert np.mean(spread) < 2, "400 sentences of 2 to 20 subwords, sorted, change by less than 2 in 100 tokens"


def test_little_of_an_update_is_padding_on_either_side() -> None:
    """For pairs whose sides differ in length as in real text."""
    generator = np.random.default_rng(1)
    sources = generator.integers(2, 60, 4000)
    targets = (sources * generator.uniform(0.6, 1.4, 4000)).astype(int)
    pairs = Pairs(numbered(sources), numbered(targets), 200)
    real, padded = 0, 0
    for update in pairs.epoch(3000, seed=4, epoch=0):
        batch = pairs.batch(update)
        real += int(batch.source_mask.sum() + batch.target_mask.sum())
        padded += batch.source_mask.numel() + batch.target_mask.numel()
    assert real / padded > 0.87, "0.83 in the order of source lengths, then target lengths"


def test_pairs_too_long_on_either_side_are_left_out_and_the_rest_stay_side_by_side() -> None:
    pairs = Pairs(numbered([3, 7, 2, 4, 4]), numbered([4, 1, 8, 5, 4]), max_subwords=4)
    assert pairs.index.tolist() == [0, 4]
    assert pairs.left_out == 3
    batch = pairs.batch(np.array([4, 0]))
    assert batch.source[:, :-1].tolist() == [[16, 17, 18, 19], [0, 1, 2, EOS]]
    assert batch.target_output[:, :-1].tolist() == [[18, 19, 20, 21], [0, 1, 2, 3]]


def test_evaluation_takes_the_first_pairs_each_once_with_its_number(digit_pairs: Callable[..., Pairs]) -> None:
    pairs = digit_pairs(count=50)
    seen = {}
    for members, batch in pairs.in_order(30, 17):
        for number, source, mask in zip(members.tolist(), batch.source, batch.source_mask, strict=True):
            assert number not in seen
            seen[number] = source[mask].tolist()
    assert seen == {number: [*pairs.source[number].tolist(), EOS] for number in range(17)}


def test_sides_of_different_numbers_of_sentences_are_no_pairs() -> None:
    with pytest.raises(UserError, match=r"^The source has 3 sentences and the target 2: give files of one text\.$"):
        pairs_of(numbered([1, 2, 3]), numbered([4, 5]), 9, labelled=False)

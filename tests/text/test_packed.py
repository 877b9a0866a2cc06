"""Batches without padding: where sentences lie, how heads are laid out as rows of one length, and the way back."""

import numpy as np
import pytest
import torch

from heads.text.packed import Packed, Spans, pack
from heads.text.special_ids import BOS, EOS, PAD

SOURCES = [np.array([5, 6, 7], np.int32), np.array([], np.int32), np.array([9], np.int32)]
TARGETS = [np.array([8], np.int32), np.array([9, 10], np.int32), np.array([3, 4, 5], np.int32)]
LENGTHS = np.array([4, 1, 3])
H, E, P = 2, 5, 3


def test_sentences_follow_one_another_with_eos_after_and_bos_before_each() -> None:
    batch = pack(SOURCES, TARGETS)
    assert batch.source.tolist() == [5, 6, 7, EOS, EOS, 9, EOS]
    assert batch.target_input.tolist() == [BOS, 8, BOS, 9, 10, BOS, 3, 4, 5]
    assert batch.target_output.tolist() == [8, EOS, 9, 10, EOS, 3, 4, 5, EOS]
    assert batch.source_spans.starts.tolist() == [0, 4, 5, 7] and batch.target_spans.starts.tolist() == [0, 2, 5, 9]
    assert batch.source_spans.sentences.tolist() == [0, 0, 0, 0, 1, 2, 2]
    assert batch.source_spans.places.tolist() == [0, 1, 2, 3, 0, 0, 1]
    assert (batch.source_spans.longest, batch.target_spans.longest, batch.real) == (4, 4, 9)
    assert batch.source_spans.starts.dtype is torch.int32, "as flash attention reads them"


@pytest.mark.parametrize("multiple", [2, 4, 9])
def test_a_last_sentence_of_padding_fills_a_batch_up_and_there_is_always_one(multiple: int) -> None:
    batch, plain = pack(SOURCES, TARGETS, multiple=multiple), pack(SOURCES, TARGETS)
    assert batch.real == 9
    for name in ("source", "target_input", "target_output"):
        ids, real = getattr(batch, name), getattr(plain, name)
        assert len(ids) % multiple == 0 and len(real) < len(ids) <= len(real) + multiple
        assert ids[: len(real)].tolist() == real.tolist() and not ids[len(real) :].any(), f"padding is {PAD}"
    for spans, ids in ((batch.source_spans, batch.source), (batch.target_spans, batch.target_input)):
        assert len(spans.starts) == 3 + 2 and int(spans.starts[-1]) == len(ids) == len(spans.places)


def test_a_batch_keeps_all_its_fields_on_the_way_to_a_device() -> None:
    batch = pack(SOURCES, TARGETS, multiple=4)
    other = batch.to(torch.device("cpu"))
    assert other.real == batch.real
    for name in Packed.__slots__:
        one, same = getattr(batch, name), getattr(other, name)
        if isinstance(one, Spans):
            assert vars(one).keys() == vars(same).keys() >= {"starts", "sentences", "places", "grid", "mask"}
            assert all(torch.equal(value, vars(same)[part]) for part, value in vars(one).items() if part[0] != "_")
        elif isinstance(one, torch.Tensor):
            assert torch.equal(one, same)


def test_heads_are_laid_out_as_rows_of_one_length_and_gathered_again() -> None:
    spans = Spans.of_lengths(LENGTHS)
    states = torch.arange(8 * P * H * E, dtype=torch.float64).view(8, P * H * E)
    laid = spans.padded_heads(states, P, H)
    assert len(laid) == P and all(part.shape == (3, H, 4, E) for part in laid)
    number = 0
    for sentence, length in enumerate(LENGTHS):
        for place in range(length):
            for one in range(P):
                for head in range(H):
                    first = (one * H + head) * E
                    wanted = states[number, first : first + E]
                    assert laid[one][sentence, head, place].tolist() == wanted.tolist()
            number += 1
    assert torch.equal(torch.cat([spans.packed_heads(part) for part in laid], 1), states)
    assert spans.mask is not None and spans.mask.sum(1).tolist() == LENGTHS.tolist()
    assert Spans.of_lengths(np.array([3, 3])).mask is None


@pytest.mark.parametrize("lengths", [LENGTHS, np.array([3, 3])])
def test_gradients_go_the_same_way_and_padding_gets_none(lengths: np.ndarray) -> None:
    spans, generator = Spans.of_lengths(lengths), torch.Generator().manual_seed(3)
    states = torch.randn(int(lengths.sum()), P * H * E, generator=generator, dtype=torch.float64, requires_grad=True)
    one, _, last = spans.padded_heads(states, P, H)
    within = torch.arange(int(lengths.max())) < torch.tensor(lengths)[:, None]
    slopes = torch.randn(one.shape, generator=generator, dtype=torch.float64) * within[:, None, :, None]
    (found,) = torch.autograd.grad(((one + 2 * last) * slopes).sum(), states)
    back = spans.packed_heads(slopes)
    assert torch.equal(found, torch.cat([back, torch.zeros_like(back), 2 * back], 1))
    heads = torch.randn(one.shape, generator=generator, dtype=torch.float64, requires_grad=True)
    shares = torch.randn(back.shape, generator=generator, dtype=torch.float64)
    (found,) = torch.autograd.grad((spans.packed_heads(heads) * shares).sum(), heads)
    assert torch.equal(spans.packed_heads(found), shares) and not found[~within[:, None].expand(-1, H, -1)].any()

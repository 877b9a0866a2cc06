"""Attention by two products against the formula, written slowly, and when it replaces torch's own kernel."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from heads.model import attention
from heads.model.attention import Attention, attend_by_products
from heads.model.sublayers import parts_of
from heads.model.transformer import Transformer

B, H, Q, E = 2, 3, 4, 5


def by_formula(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Each head's output at each query, one weight after another."""
    found = torch.zeros_like(queries)
    for b, h, q in torch.cartesian_prod(*map(torch.arange, queries.shape[:3])).tolist():
        seen = [k for k in range(keys.shape[2]) if mask is None or mask[b, 0, min(q, mask.shape[2] - 1), k]]
        weights = [math.exp(float(queries[b, h, q] @ keys[b, h, k]) / queries.shape[3] ** 0.5) for k in seen]
        found[b, h, q] = sum(w / sum(weights) * values[b, h, k] for w, k in zip(weights, seen, strict=True))
    return found


@pytest.mark.parametrize("places", [1, 7, 15, 16, 19])
@pytest.mark.parametrize("masked", ["nothing", "for all queries", "by query"])
def test_attention_by_products_is_the_formula(places: int, masked: str) -> None:
    """Keys and values are the first of a larger buffer, and heads lie behind queries, as in beam search."""
    generator = torch.Generator().manual_seed(places)
    queries = torch.randn(B, Q, H, E, generator=generator).transpose(1, 2)
    keys, values = (torch.randn(B, H, places + 3, E, generator=generator)[:, :, :places] for _ in range(2))
    mask = None
    if masked != "nothing":
        mask = torch.rand(B, 1, Q if masked == "by query" else 1, places, generator=generator) > 0.4
        mask[..., 0] = True
    torch.testing.assert_close(
        attend_by_products(queries, keys, values, mask, 0.0), by_formula(queries, keys, values, mask)
    )


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of sentences that were attended to by products; at least 3 sentences with at most 24 weights are."""
    found, products = list[int](), attention.attend_by_products

    def counted(queries: Tensor, *others: Any) -> Tensor:
        found.append(len(queries))
        return products(queries, *others)

    monkeypatch.setattr(attention, "LEAST_SENTENCES", 3)
    monkeypatch.setattr(attention, "MOST_WEIGHTS", 24)
    monkeypatch.setattr(attention, "attend_by_products", counted)
    return found


def test_products_replace_the_kernel_for_many_short_sentences_on_a_cpu(calls: list[int]) -> None:
    torch.manual_seed(1)
    layer = Attention(10, 2, 5, dropout=0.0)

    def attend(sentences: int, places: int, part: Attention = layer, dtype: torch.dtype = torch.float32) -> torch.dtype:
        states, own = (torch.randn(sentences, number, 10, dtype=dtype) for number in (4, places))
        found: Tensor = part(states, part.project(own))
        return found.dtype

    attend(2, 6)
    attend(3, 7)
    attend(3, 6, Attention(10, 2, 5, dropout=0.0).double(), torch.float64)
    assert not calls
    attend(3, 6)
    with torch.autocast("cpu", torch.bfloat16):
        assert attend(3, 6) is torch.bfloat16
    assert calls == [3, 3]


@pytest.mark.parametrize("places", [5, 18])
def test_dropout_leaves_each_weight_out_or_makes_it_larger(places: int) -> None:
    """Values are unit vectors, so that the outputs are the weights."""
    torch.manual_seed(3)
    queries, keys = torch.randn(B, H, Q, places), torch.randn(B, H, places, places)
    values = torch.eye(places).expand(B, H, places, places)
    weights, dropped = [attend_by_products(queries, keys, values, None, share) for share in (0.0, 0.25)]
    kept = dropped > 0
    torch.testing.assert_close(dropped, kept * weights / 0.75)
    assert 0.6 < float(kept.float().mean()) < 0.9


def test_weights_are_dropped_in_training_alone(calls: list[int]) -> None:
    layer, states = Attention(10, 2, 5, dropout=0.5), torch.randn(3, 4, 10)
    assert not torch.equal(layer(states, None), layer(states, None))
    assert torch.equal(layer.eval()(states, None), layer(states, None))
    assert calls == [3] * 4


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_by_products_are_those_of_the_kernel(calls: list[int], *, causal: bool) -> None:
    torch.manual_seed(2)
    layer, states, slopes = Attention(10, 2, 5, dropout=0.0), torch.randn(5, 4, 10), torch.randn(5, 4, 10)
    mask = None if causal else torch.tensor([[[[True, True, False, True]]]] * 5)
    both = []
    for by_products in (True, False):
        attention.LEAST_SENTENCES = 3 if by_products else 9
        given = states.clone().requires_grad_()
        found = layer(given, None, mask=mask, causal=causal)
        found.backward(slopes)
        both.append([found, given.grad, *(each.grad for each in layer.parameters())])
        layer.zero_grad()
    assert calls == [5]
    torch.testing.assert_close(*both)


def test_keys_and_values_of_a_source_are_stored_head_by_head(tiny_model: Callable[..., Transformer]) -> None:
    """Else each step would copy them."""
    kept = [part.start(torch.zeros(2, 6, 10, dtype=torch.float64), 1) for part in parts_of(tiny_model().decoder)]
    stored = [each for cached in kept if cached.of_source for each in cached.tensors().values()]
    assert [tuple(each.shape) for each in stored] == [(2, 3, 6, 2)] * 4
    assert all(each.is_contiguous() for each in stored)

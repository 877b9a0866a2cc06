"""Attention by two products against the formula, written slowly, and when it replaces torch's own kernel."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from heads.model import attention
from heads.model.attention import Attention, in_products, short
from heads.model.sublayers import parts_of
from heads.model.transformer import Transformer

B, H, Q, E = 2, 3, 4, 5


def by_formula(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Each head's output at each query, one weight after another."""
    found = torch.zeros_like(queries)
    for b, h, q in torch.cartesian_prod(*map(torch.arange, (B, H, Q))).tolist():
        seen = [k for k in range(keys.shape[2]) if mask is None or mask[b, 0, min(q, mask.shape[2] - 1), k]]
        weights = [math.exp(float(queries[b, h, q] @ keys[b, h, k]) / math.sqrt(E)) for k in seen]
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
    torch.testing.assert_close(in_products(queries, keys, values, mask), by_formula(queries, keys, values, mask))


def test_products_replace_the_kernel_for_many_short_sentences_in_inference_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(1)
    layer, calls = Attention(10, 2, 5, dropout=0.0), list[int]()
    monkeypatch.setattr(attention, "LEAST_SENTENCES", 3)
    monkeypatch.setattr(attention, "MOST_WEIGHTS", 24)

    def counted(queries: Tensor, *_: object) -> Tensor:
        calls.append(len(queries))
        return queries

    monkeypatch.setattr(attention, "in_products", counted)

    def attend(sentences: int, places: int, *, causal: bool = False) -> None:
        own = torch.randn(sentences, places, 10)
        layer(torch.randn(sentences, 4, 10), None if causal else layer.project(own), causal=causal)

    attend(3, 6)
    with torch.no_grad():
        attend(3, 6)
    assert not calls
    with torch.inference_mode():
        attend(2, 6)
        attend(3, 7)
        attend(3, 6, causal=True)
        assert not calls
        attend(3, 6)
    assert calls == [3]
    queries = torch.zeros(3, 2, 4, 5)
    assert short(queries, queries) and not short(queries.double(), queries)


def test_keys_and_values_of_a_source_are_stored_head_by_head(tiny_model: Callable[..., Transformer]) -> None:
    """Else each step would copy them."""
    kept = [part.start(torch.zeros(2, 6, 10, dtype=torch.float64), 1) for part in parts_of(tiny_model().decoder)]
    stored = [each for cached in kept if cached.of_source for each in cached.tensors().values()]
    assert [tuple(each.shape) for each in stored] == [(2, 3, 6, 2)] * 4
    assert all(each.is_contiguous() for each in stored)

"""A translator without padding is the same as with it: states and gradients, with heads that are gone and others."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heads.model import attention
from heads.model.shape import SSRU
from heads.model.transformer import Transformer
from heads.text.batches import make_batch
from heads.text.packed import Packed, pack

Build = Callable[..., Transformer]
SIDES = ((4, 9, 1, 7), (5, 3, 8, 2))
KINDS: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "post-norm": {"pre_norm": False},
    "recurrent": {
        "decoder_past": SSRU,
        "live_heads": {"enc_self": ((0, 1, 2), (1,)), "dec_self": (), "dec_enc": ((2,), ())},
    },
    "heads are gone": {
        "live_heads": {"enc_self": ((0, 2), ()), "dec_self": ((), (1,)), "dec_enc": ((0, 1, 2), ())},
        "attention_biases": True,
    },
    "distances": {
        "live_heads": {"enc_self": ((2,), (0, 1)), "dec_self": ((), (1, 2)), "dec_enc": ((0, 1, 2), ())},
        "positions": "distances",
        "distance_buckets": 8,
        "farthest_distance": 5,
        "rms_norm": True,
        "gated_units": True,
    },
}


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest, tiny_model: Build) -> Transformer:
    return tiny_model(**KINDS[request.param]).double()


def sides(model: Transformer) -> list[list[np.ndarray]]:
    draw, most = np.random.default_rng(2), (model.shape.source_subwords, model.shape.target_subwords)
    return [
        [draw.integers(4, number, length).astype(np.int32) for length in lengths]
        for lengths, number in zip(SIDES, most, strict=True)
    ]


def gates_of(model: Transformer) -> dict[str, list[Tensor]]:
    generator = torch.Generator().manual_seed(5)
    return {
        kind: [torch.rand(len(heads), generator=generator, dtype=torch.float64, requires_grad=True) for heads in layers]
        for kind, layers in model.shape.live_heads.items()
    }


def gradients(model: Transformer, states: Tensor, gates: dict[str, list[Tensor]]) -> list[Tensor]:
    slopes = torch.randn(states.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    learning = [*model.parameters(), *(gate for layers in gates.values() for gate in layers)]
    found = torch.autograd.grad((states * slopes).sum(), learning, allow_unused=True, materialize_grads=True)
    return [*found]


def assert_same(model: Transformer, batch: Packed) -> None:
    padded = make_batch(*sides(model))
    gates = gates_of(model)
    wanted = model(padded.source, padded.source_mask, padded.target_input, gates)[padded.target_mask]
    expected = gradients(model, wanted, gates)
    states = model.packed(batch, gates)[: batch.real]
    torch.testing.assert_close(states, wanted, rtol=0, atol=1e-12)
    for one, other in zip(gradients(model, states, gates), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    assert any(gradient.any() for gradient in expected)


@pytest.mark.parametrize("multiple", [1, 16])
def test_states_and_gradients_are_those_of_a_padded_batch(model: Transformer, multiple: int) -> None:
    assert_same(model, pack(*sides(model), multiple=multiple))


def slowly(
    queries: Tensor, keys: Tensor, values: Tensor, starts: Tensor, others: Tensor, longest: int, most: int,
    dropout: float, is_causal: bool, **more: Any,  # noqa: FBT001
) -> tuple[Tensor]:  # fmt: skip
    """Flash attention by its definition, sentence by sentence."""
    assert (longest, most) == (int(starts.diff().max()), int(others.diff().max()))
    assert (
        starts.dtype is others.dtype is torch.int32
        and dropout == 0
        and more == {"return_debug_mask": False, "scale": None}
    )
    found = []
    own, theirs = (ends.unfold(0, 2, 1).tolist() for ends in (starts, others))
    for (first, end), (start, stop) in zip(own, theirs, strict=True):
        scores = torch.einsum("qhe,khe->hqk", queries[first:end], keys[start:stop]) * queries.shape[-1] ** -0.5
        if is_causal:
            scores = scores + torch.full(scores.shape[1:], -torch.inf, dtype=scores.dtype).triu(1)
        found.append(torch.einsum("hqk,khe->qhe", scores.softmax(-1), values[start:stop]))
    return (torch.cat(found),)


@pytest.mark.parametrize("multiple", [1, 16])
def test_and_so_they_are_by_flash_attention_which_lays_nothing_out(
    model: Transformer, monkeypatch: pytest.MonkeyPatch, multiple: int
) -> None:
    monkeypatch.setattr(attention, "taken_by_flash", lambda *_: True)
    monkeypatch.setattr(torch.ops.aten, "_flash_attention_forward", slowly)
    assert_same(model, pack(*sides(model), multiple=multiple))


def test_flash_attention_is_called_as_torch_declares_it() -> None:
    """On no device, by shapes alone."""
    place = torch.device("meta")
    queries = torch.empty(7, 3, 8, dtype=torch.bfloat16, device=place)
    both = torch.empty(9, 2, 3, 8, dtype=torch.bfloat16, device=place).unbind(1)
    own, others = (attention.Spans.of_lengths(np.array(lengths)).to(place) for lengths in ((4, 3), (2, 7)))
    found = attention.attend_by_flash(queries, attention.KeyValues(*both), own, others, 0.1, causal=True)
    assert found.shape == queries.shape and found.dtype is torch.bfloat16


@pytest.mark.parametrize(
    ("dtype", "width", "taken"),
    [(torch.bfloat16, 64, True), (torch.float32, 64, False), (torch.bfloat16, 12, False), (torch.bfloat16, 264, False)],
)
def test_flash_attention_takes_what_it_can(dtype: torch.dtype, width: int, *, taken: bool) -> None:
    class OnGpu:
        device = torch.device("cuda")

        def element_size(self) -> int:
            return torch.empty(0, dtype=dtype).element_size()

    assert attention.taken_by_flash(OnGpu(), width) == taken  # type: ignore[arg-type]
    assert not attention.taken_by_flash(torch.empty(1, dtype=torch.bfloat16), 64)

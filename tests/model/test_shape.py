"""The one list of live heads, against a list written by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heads.model.shape import ModelShape, full_heads

LIVE = {"enc_self": ((0, 2), ()), "dec_self": ((), (1,)), "dec_enc": ((2,), (0, 1))}
HEADS = (
    ("enc_self", 0, 0), ("enc_self", 0, 2), ("dec_self", 1, 1), ("dec_enc", 0, 2), ("dec_enc", 1, 0), ("dec_enc", 1, 1),
)  # fmt: skip


def test_live_heads_come_by_attention_layer_and_their_first_number_whatever_order_is_asked_for(
    tiny_shape: Callable[..., ModelShape],
) -> None:
    shape = tiny_shape(live_heads={kind: LIVE[kind] for kind in ("dec_enc", "enc_self", "dec_self")})
    assert shape.heads() == HEADS
    assert shape.heads(("dec_enc", "enc_self")) == HEADS[:2] + HEADS[3:]
    assert shape.heads(["dec_self"]) == HEADS[2:3]
    assert shape.heads(()) == ()


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (2, 3)])
def test_a_whole_model_has_every_head_of_every_layer(
    tiny_shape: Callable[..., ModelShape], layers: int, heads: int
) -> None:
    shape = tiny_shape(live_heads=full_heads(layers=layers, heads=heads))
    assert {shape.layers(kind) for kind in shape.live_heads} == {layers} and len(shape.heads()) == 3 * layers * heads
    assert shape.heads()[-1] == ("dec_enc", layers - 1, heads - 1)

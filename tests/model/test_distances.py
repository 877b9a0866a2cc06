"""What T5 has in the one Transformer: biases of distances, norms without mean, gated units, a start that is padding."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from few_heads import assert_steps_are_those_at_once
from heads.model.attention import Trace
from heads.model.distances import bucket_numbers
from heads.model.feedforward import FeedForward
from heads.model.head_removal import check_equal, prune
from heads.model.shape import ModelShape
from heads.model.sublayers import SelfAttention, norm_of, parts_of
from heads.model.transformer import Transformer
from heads.text.batches import Batch
from heads.text.special_ids import BOS, PAD
from heads.translation.beam_search import beam_search
from shape_facts import LIKE_T5

Build = Callable[..., Transformer]
HEADS = (0, 1, 2)
SHARED: dict[str, Any] = {
    **LIKE_T5,
    "live_heads": {"enc_self": (HEADS,) * 3, "dec_self": (HEADS,) * 2, "dec_enc": (HEADS,) * 2},
    "head_width": 4,
    "starts_with_padding": True,
}
BY_LAYER = SHARED | {"distances_by_layer": True}
OPEN = {
    "enc_self": [[True, False, False], [False] * 3, [False, False, True]],
    "dec_self": [[False] * 3, [False, True, True]],
    "dec_enc": [[False, True, True], [False] * 3],
}
"""Both first layers, which hold the biases in transformers' T5, lose heads that later layers keep."""


def bucket_by_definition(ahead: int, buckets: int, farthest: int, *, causal: bool) -> int:
    """In whole numbers: the largest k with (d / exact)^n >= (farthest / exact)^k, where n buckets are logarithmic."""
    away = max(-ahead, 0) if causal else abs(ahead)
    side = buckets if causal else buckets // 2
    exact, first = side // 2, 0 if causal or ahead <= 0 else side
    if away < exact:
        return first + away
    further = side - exact
    k = max(k for k in range(further + 1) if away**further * exact**k >= farthest**k * exact**further)
    return first + min(exact + k, side - 1)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (8, 5), (12, 40)])
def test_buckets_are_those_of_the_definition(buckets: int, farthest: int, *, causal: bool) -> None:
    found = bucket_numbers(buckets, farthest, causal=causal).tolist()
    distances = range(-farthest, farthest + 1)
    assert found == [bucket_by_definition(ahead, buckets, farthest, causal=causal) for ahead in distances]


@pytest.mark.parametrize("change", [SHARED, BY_LAYER])
def test_a_shape_with_distances_is_told_and_comes_back(
    tiny_shape: Callable[..., ModelShape], change: dict[str, Any]
) -> None:
    shape = tiny_shape(**change)
    assert ModelShape.from_dict(json.loads(json.dumps(shape.as_dict()))) == shape
    for wrong in ({"positions": "halves"}, {"distance_buckets": 0}, {"farthest_distance": 4}):
        with pytest.raises(ValueError, match="distances need"):
            replace(shape, **wrong)


@pytest.mark.parametrize("change", [SHARED, BY_LAYER, SHARED | {"scaled_products": True}])
def test_weights_are_the_softmax_of_products_and_the_bias_of_each_heads_bucket(
    tiny_model: Build, tiny_batch: Batch, change: dict[str, Any]
) -> None:
    model, trace = prune(tiny_model(**change), OPEN).double().eval(), Trace()
    model(tiny_batch.source, tiny_batch.source_mask, tiny_batch.target_input, trace=trace)
    tables = dict(model.named_parameters())
    for stack, kind in (("encoder", "enc_self"), ("decoder", "dec_self")):
        for layer, live in enumerate(model.shape.live_heads[kind]):
            attention = model.get_submodule(f"{stack}.{layer}.self_attention")
            states = trace[f"{kind}.{layer}.input"]
            entered = model.get_submodule(f"{stack}.{layer}.self_residual").norm(states)  # type: ignore[operator]
            queries, keys = attention.split(attention.query(entered)), attention.split(attention.key(entered))  # type: ignore[operator]
            own, shared = f"{stack}.{layer}.distances.weight", f"{stack}_distances.weight"
            for place, head in enumerate(live):
                column = place if own in tables else model.shape.sharing(kind).index(head)
                table = tables[own if own in tables else shared][:, column]
                for query in range(states.shape[1]):
                    last = query + 1 if kind == "dec_self" else int(tiny_batch.source_mask[1].sum())
                    scores = [
                        queries[1, place, query] @ keys[1, place, key] / (2 if model.shape.scaled_products else 1)
                        + table[bucket_by_definition(key - query, 8, 5, causal=kind == "dec_self")]
                        for key in range(last)
                    ]
                    found = trace[f"{kind}.{layer}.weights"][1, place, query]
                    torch.testing.assert_close(found[:last], torch.stack(scores).softmax(0))
                    assert not found[last:].any()


@pytest.mark.parametrize("change", [SHARED, BY_LAYER])
@pytest.mark.parametrize("open_heads", [OPEN, {"enc_self": OPEN["enc_self"]}, {"dec_self": OPEN["dec_self"]}])
def test_removed_heads_take_their_columns_of_the_bias_along_and_shared_ones_stay_while_a_layer_needs_them(
    tiny_model: Build, change: dict[str, Any], open_heads: dict[str, list[list[bool]]]
) -> None:
    model = tiny_model(**change)
    smaller = prune(model, open_heads)
    check_equal(model, smaller, open_heads)
    left = {name: value.shape[1] for name, value in smaller.state_dict().items() if "distances" in name}
    enc, dec = "enc_self" in open_heads, "dec_self" in open_heads
    if change is SHARED:
        assert left == {"encoder_distances.weight": 2 if enc else 3, "decoder_distances.weight": 2 if dec else 3}
    else:
        layers = {"encoder": (1, 0, 1) if enc else (3,) * 3, "decoder": (0, 2) if dec else (3,) * 2}
        assert left == {f"{s}.{i}.distances.weight": n for s, of in layers.items() for i, n in enumerate(of)}
    again = {kind: [[True, *[False] * 2][: sum(layer)] for layer in layers] for kind, layers in open_heads.items()}
    check_equal(smaller, prune(smaller, again), again)


@pytest.mark.parametrize("change", [SHARED, BY_LAYER])
def test_steps_with_distances_are_those_at_once(tiny_model: Build, tiny_batch: Batch, change: dict[str, Any]) -> None:
    for model in (tiny_model(**change), prune(tiny_model(**change), OPEN).double()):
        assert_steps_are_those_at_once(model, tiny_batch)


@torch.no_grad()
def test_a_beam_scores_what_it_finds_as_decoding_at_once_does(tiny_model: Build) -> None:
    """Hypotheses change places and leave the batch, and their pasts are tidied: each must see its own distances."""
    model = tiny_model(**SHARED).double()
    model.projection.weight.data *= 3
    source = torch.randint(4, 13, (4, 9), generator=torch.Generator().manual_seed(1))
    memory, mask = model.encode(source, source > 0), source > 0
    cache = model.start_cache(memory, mask, 3)
    pasts, choose = torch.full((4, 3, 1), BOS), torch.Generator().manual_seed(2)
    for step in range(30):
        logits = model.decode_next(pasts[:, :, -1], cache)
        for beam in range(3):
            expected = model.projection(model.decode(pasts[:, beam], memory, mask))[:, -1]
            torch.testing.assert_close(logits[:, beam], expected)
        parents = torch.randint(3, pasts.shape[:2], generator=choose)
        cache.reorder(parents)
        pasts = pasts.gather(1, parents[:, :, None].expand_as(pasts))
        if step == 11:
            rows = torch.tensor([0, 2, 3])
            cache.keep(rows)
            pasts, memory, mask = pasts[rows], memory[rows], mask[rows]
        newest = torch.randint(4, 11, pasts.shape[:2], generator=choose)
        pasts = torch.cat([pasts, newest[:, :, None]], 2)
    found = beam_search(model, source, source > 0, beam=3, length_penalty=0.6)
    assert len({len(ids) for ids in found}) > 1, "sentences end at different steps"


def test_gradients_of_the_biases_are_those_of_finite_differences(tiny_model: Build, tiny_batch: Batch) -> None:
    model, step = tiny_model(**SHARED).double(), 1e-6

    def value() -> Tensor:
        states: Tensor = model(tiny_batch.source, tiny_batch.source_mask, tiny_batch.target_input)
        return (states * torch.linspace(-1, 1, states.numel()).view(states.shape)).sum()

    value().backward()
    for stack in ("encoder", "decoder"):
        table = model.get_parameter(f"{stack}_distances.weight")
        assert table.grad is not None and int((table.grad != 0).sum()) >= 9
        for bucket, head in ((0, 1), (2, 0), (1, 2)):
            ends = []
            for change in (step, -2 * step):
                table.data[bucket, head] += change
                ends.append(float(value()))
            table.data[bucket, head] += step
            assert float(table.grad[bucket, head]) == pytest.approx((ends[0] - ends[1]) / 2 / step, abs=1e-6)


def test_a_norm_without_mean_divides_by_the_root_mean_square(tiny_shape: Callable[..., ModelShape]) -> None:
    norm, states = norm_of(tiny_shape(**SHARED, norm_epsilon=0.01)).double(), torch.randn(3, 10).double()
    weight = norm.get_parameter("weight")
    weight.data += torch.randn(10)
    for state, found in zip(states.tolist(), norm(states).tolist(), strict=True):
        root = math.sqrt(sum(x * x for x in state) / 10 + 0.01)
        assert found == pytest.approx([x / root * w for x, w in zip(state, weight.tolist(), strict=True)])
    assert [name for name, _ in norm.named_parameters()] == ["weight"]


def test_gated_units_are_activated_sums_times_other_sums_of_the_same_states() -> None:
    part, states = FeedForward(6, 7, 0.0, "gelu_tanh", gated=True, biases=False).double(), torch.randn(2, 6).double()
    gates = torch.rand(7).double()
    assert part.factor is not None and [*part.state_dict()] == ["inner.weight", "outer.weight", "factor.weight"]

    def activated(x: float) -> float:
        return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    for state, found in zip(states, part(states, gates), strict=True):
        sums, factors = (part.inner.weight @ state).tolist(), (part.factor.weight @ state).tolist()
        hidden = [activated(x) * y * g for x, y, g in zip(sums, factors, gates.tolist(), strict=True)]
        torch.testing.assert_close(found, part.outer.weight @ torch.tensor(hidden).double())


def test_gated_units_are_removed_with_both_of_their_maps(tiny_model: Build) -> None:
    model = tiny_model(**SHARED)
    units = [[number % 3 != layer for number in range(7)] for layer in range(3)]
    smaller = prune(model, {"enc_ffn": units})
    check_equal(model, smaller, {"enc_ffn": units})
    assert smaller.get_parameter("encoder.0.feedforward.factor.weight").shape == (4, 10)


def test_the_decoder_begins_with_the_vector_of_padding_and_nothing_else_depends_on_place(
    tiny_model: Build, tiny_batch: Batch
) -> None:
    model = tiny_model(**SHARED)
    embedding = model.target_embedding
    found = embedding(torch.tensor([[BOS, 5, 5]]))
    torch.testing.assert_close(found[0, 0], embedding.subwords.weight[PAD])
    torch.testing.assert_close(found[0, 1], found[0, 2])
    before = model(tiny_batch.source, tiny_batch.source_mask, tiny_batch.target_input)
    model.get_parameter("encoder_distances.weight").data[:] = 1.5
    model.get_parameter("decoder_distances.weight").data[:] = -0.5
    same = model(tiny_batch.source[:, [1, 0, 2, 3, 4]], tiny_batch.source_mask, tiny_batch.target_input)
    other = model(tiny_batch.source, tiny_batch.source_mask, tiny_batch.target_input)
    torch.testing.assert_close(same[0], other[0])
    assert float((before - other).abs().max()) > 1e-3


def test_every_self_attention_and_no_other_has_biases(tiny_model: Build) -> None:
    model = tiny_model(**BY_LAYER)
    found = [part for stack in (model.encoder, model.decoder) for part in parts_of(stack)]
    biased = [part for part in found if isinstance(part, SelfAttention) and part.distances is not None]
    assert len(biased) == len({id(part.distances) for part in biased}) == 5
    shared = [part for part in parts_of(tiny_model(**SHARED).encoder) if isinstance(part, SelfAttention)]
    assert len({id(part.distances) for part in shared}) == 1

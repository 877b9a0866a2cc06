"""The model against its definition written slowly: attention in loops, layers by hand, gates by finite differences."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from test_attention import by_formula
from torch import Tensor

from few_heads import assert_steps_are_those_at_once
from heads.base.names import ATTENTIONS
from heads.model.attention import Attention
from heads.model.encoder import sinusoids
from heads.model.sublayers import Layer, Pass, Residual, run_through
from heads.model.transformer import Transformer
from heads.text.batches import Batch

Build = Callable[..., Transformer]
B, H, Q, K, E, D = 2, 3, 4, 5, 2, 10


@pytest.fixture
def attention() -> Attention:
    torch.manual_seed(4)
    return Attention(D, H, E, dropout=0.0).double().eval()


@pytest.fixture
def states() -> tuple[Tensor, Tensor, Tensor]:
    """Queries [B, Q, D], attended [B, K, D] and the mask of the attended, with a hole and with padding."""
    generator = torch.Generator().manual_seed(5)
    queries = torch.randn(B, Q, D, generator=generator, dtype=torch.float64)
    attended = torch.randn(B, K, D, generator=generator, dtype=torch.float64)
    return queries, attended, torch.tensor([[True, True, False, True, True], [True, True, True, False, False]])


@torch.no_grad()
def by_definition(attention: Attention, queries: Tensor, attended: Tensor, seen: Tensor) -> Tensor:
    """The heads [B, Q, H*E] of queries that see some of the attended each, `seen` [B, Q, K], side by side."""
    given = ((queries, attention.query), (attended, attention.key), (attended, attention.value))
    q, k, v = ((states @ part.weight.T).unflatten(-1, (H, E)).transpose(1, 2) for states, part in given)
    return by_formula(q, k, v, seen[:, None]).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("way", ["fast", "traced"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_equals_its_definition_written_with_loops(
    attention: Attention, states: tuple[Tensor, Tensor, Tensor], way: str, *, causal: bool
) -> None:
    """Causal attention of queries to themselves: each sees itself and what is before it."""
    queries, attended, mask = states
    if causal:
        attended, seen = queries, torch.ones(B, Q, Q).tril().bool()
    else:
        seen = mask[:, None, :].expand(B, Q, K)
    expected = by_definition(attention, queries, attended, seen) @ attention.output.weight.T
    trace: dict[str, Tensor] | None = {} if way == "traced" else None
    own = None if causal else mask[:, None, None, :]
    result = attention(queries, attention.project(attended), mask=own, causal=causal, trace=trace)
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_traced_forward_pass_equals_an_untraced_one_and_ones_as_gates_change_nothing(
    tiny_model: Build, tiny_batch: Batch, norm: str
) -> None:
    model, batch = tiny_model(pre_norm=norm == "pre"), tiny_batch
    plain = model(batch.source, batch.source_mask, batch.target_input)
    gates = {kind: [torch.ones(3, dtype=torch.float64)] * 2 for kind in ATTENTIONS}
    trace: dict[str, Tensor] = {}
    traced = model(batch.source, batch.source_mask, batch.target_input, gates, trace)
    assert plain.shape == (2, 4, 10)
    for number in range(2):
        real = batch.target_mask[number]
        torch.testing.assert_close(traced[number][real], plain[number][real])
    sizes = {"enc_self": (2, 3, 5, 5), "dec_self": (2, 3, 4, 4), "dec_enc": (2, 3, 4, 5)}
    assert {name: tuple(trace[f"{name}.1.weights"].shape) for name in ATTENTIONS} == sizes


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_a_gate_in_the_model_equals_scaling_that_heads_slice_of_the_output_projection(
    tiny_model: Build, tiny_batch: Batch, kind: str
) -> None:
    model, batch = tiny_model(), tiny_batch
    gates = {kind: [torch.ones(3).double(), torch.tensor([1.0, 0.3, 0.0]).double()]}
    gated = model(batch.source, batch.source_mask, batch.target_input, gates)
    layer: Any = (model.encoder if kind == "enc_self" else model.decoder)[1]
    module = layer.cross_attention if kind == "dec_enc" else layer.self_attention
    plain = model(batch.source, batch.source_mask, batch.target_input)
    module.output.weight.data *= torch.tensor([1.0, 1.0, 0.3, 0.3, 0.0, 0.0])
    masked = model(batch.source, batch.source_mask, batch.target_input)
    torch.testing.assert_close(gated, masked)
    assert not torch.allclose(gated, plain)


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_the_gradient_on_a_gate_equals_a_central_finite_difference(
    tiny_model: Build, tiny_batch: Batch, kind: str
) -> None:
    model, batch = tiny_model(), tiny_batch
    target = torch.randn(2, 4, 10, generator=torch.Generator().manual_seed(8), dtype=torch.float64)

    def loss(values: Tensor) -> Tensor:
        gates = {kind: list(values)}
        states: Tensor = model(batch.source, batch.source_mask, batch.target_input, gates)
        return (states * target).sum()

    values = torch.tensor([[1.0, 0.4, 0.7], [0.2, 1.0, 0.9]], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(values), values)
    step = 1e-6
    for layer, head in ((0, 1), (0, 2), (1, 0)):
        change = torch.zeros(2, 3, dtype=torch.float64)
        change[layer, head] = step
        with torch.no_grad():
            difference = float(loss(values + change) - loss(values - change)) / (2 * step)
        assert difference == pytest.approx(float(gradient[layer, head]), rel=1e-5, abs=1e-8)
        assert abs(difference) > 1e-4


@pytest.mark.parametrize("way", ["fast", "traced"])
def test_other_members_and_more_padding_change_nothing(tiny_model: Build, tiny_batch: Batch, way: str) -> None:
    model, batch = tiny_model(), tiny_batch
    trace: dict[str, Tensor] | None = {} if way == "traced" else None
    together = model(batch.source, batch.source_mask, batch.target_input, trace=trace)
    for number in range(2):
        source = batch.source[number][batch.source_mask[number]]
        target = batch.target_input[number][batch.target_mask[number]]
        source, mask = F.pad(source, (0, 3)), F.pad(torch.ones(len(source), dtype=torch.bool), (0, 3))
        source[~mask] = 7  # the content of the padding must not matter either
        alone = model(source[None], mask[None], target[None], trace={} if way == "traced" else None)
        torch.testing.assert_close(alone[0], together[number, : len(target)])


@pytest.mark.parametrize("position", [1, 2, 3])
def test_a_future_target_subword_changes_nothing_earlier(tiny_model: Build, tiny_batch: Batch, position: int) -> None:
    model, batch = tiny_model(), tiny_batch
    changed = batch.target_input.clone()
    changed[:, position] = 9
    before = model(batch.source, batch.source_mask, batch.target_input)
    after = model(batch.source, batch.source_mask, changed)
    torch.testing.assert_close(after[:, :position], before[:, :position])
    assert not torch.isclose(after[:, position], before[:, position]).all(-1).any()


def test_an_embedding_is_scaled_by_the_root_of_the_width_before_positions_are_added(tiny_model: Build) -> None:
    embedding = tiny_model().source_embedding
    states = embedding(torch.tensor([[7, 7]]), 2)
    expected = embedding.subwords.weight[7] * math.sqrt(10)
    torch.testing.assert_close(states[0, 1] - states[0, 0], (sinusoids(1, 10, 3) - sinusoids(1, 10, 2))[0])
    torch.testing.assert_close(states[0, 0] - sinusoids(1, 10, 2)[0], expected)


def slow_norm(states: Tensor, residual: Residual) -> Tensor:
    """Layer normalisation by its formula."""
    centred = states - states.mean(-1, keepdim=True)
    deviation = ((centred**2).mean(-1, keepdim=True) + 1e-5).sqrt()
    return centred / deviation * residual.norm.get_parameter("weight") + residual.norm.get_parameter("bias")


def slow_layer(layer: Layer, states: Tensor, memory: Tensor, seen: Tensor, norm: str) -> Tensor:
    """A decoder layer: the three sub-layers, each x + f(norm(x)) or norm(x + f(x))."""
    causal = torch.ones(B, states.shape[1], states.shape[1]).tril().bool()

    def own(x: Tensor) -> Tensor:
        return by_definition(layer.self_attention, x, x, causal) @ layer.self_attention.output.weight.T

    def cross(x: Tensor) -> Tensor:
        return by_definition(layer.cross_attention, x, memory, seen) @ layer.cross_attention.output.weight.T

    def transform(x: Tensor) -> Tensor:
        inner, outer = layer.feedforward.inner, layer.feedforward.outer
        return (x @ inner.weight.T + inner.bias).clamp(min=0) @ outer.weight.T + outer.bias

    residuals = (layer.self_residual, layer.cross_residual, layer.feedforward_residual)
    for change, residual in zip((own, cross, transform), residuals, strict=True):
        if norm == "pre":
            states = states + change(slow_norm(states, residual))
        else:
            states = slow_norm(states + change(states), residual)
    return states


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_decoder_layer_equals_its_slow_twin(
    tiny_model: Build, states: tuple[Tensor, Tensor, Tensor], norm: str
) -> None:
    layer: Any = tiny_model(pre_norm=norm == "pre").decoder[1]
    queries, memory, mask = states
    expected = slow_layer(layer, queries, memory, mask[:, None].expand(B, Q, K), norm)
    result = run_through(layer.parts, queries, Pass(mask=mask[:, None, None, :], memory=memory))
    torch.testing.assert_close(result, expected)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_layer_without_heads_equals_one_whose_gates_are_all_zero(
    tiny_model: Build, tiny_batch: Batch, norm: str
) -> None:
    batch, full = tiny_batch, tiny_model(pre_norm=norm == "pre")
    none_left = dict.fromkeys(ATTENTIONS, ((0, 1, 2), ()))
    bare = tiny_model(pre_norm=norm == "pre", live_heads=none_left)
    weights = {n: t for n, t in full.state_dict().items() if t.shape == bare.state_dict()[n].shape}
    bare.load_state_dict(weights, strict=False)
    gates = {kind: [torch.ones(3).double(), torch.zeros(3).double()] for kind in ATTENTIONS}
    expected = full(batch.source, batch.source_mask, batch.target_input, gates)
    torch.testing.assert_close(bare(batch.source, batch.source_mask, batch.target_input), expected)
    traced = bare(batch.source, batch.source_mask, batch.target_input, trace={})
    torch.testing.assert_close(traced, expected)


def test_decoding_step_by_step_equals_decoding_all_at_once(tiny_model: Build, tiny_batch: Batch) -> None:
    gates = {kind: list(torch.rand(2, 3, generator=torch.Generator().manual_seed(9)).double()) for kind in ATTENTIONS}
    assert_steps_are_those_at_once(tiny_model(), tiny_batch, gates)

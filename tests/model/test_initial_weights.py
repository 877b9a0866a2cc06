"""Weights of an untrained model, by the bounds and deviations of each kind, and where its norms are."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from heads.model.shape import ModelShape, full_heads
from heads.model.transformer import Transformer
from heads.text.batches import Batch

Shape = Callable[..., ModelShape]
SIZES = {"width": 48, "head_width": 9, "feedforward": 110, "source_subwords": 400, "target_subwords": 230}


@pytest.fixture
def fresh(tiny_shape: Shape) -> Callable[..., Transformer]:
    """Builds an untrained model that is large enough for deviations."""

    def build(*, seed: int = 6, **changes: object) -> Transformer:
        torch.manual_seed(seed)
        return Transformer(tiny_shape(**{**SIZES, **changes}))

    return build


def test_every_matrix_is_uniform_within_glorots_bound_for_its_own_sizes(fresh: Callable[..., Transformer]) -> None:
    """Glorot and Bengio 2010: a bound of sqrt(6 / (inputs + outputs)), so a deviation of that over sqrt(3)."""
    matrices = {name: value for name, value in fresh().named_parameters() if value.ndim == 2 and "subwords" not in name}
    assert len(matrices) == 6 * 4 + 4 * 2 + 1  # attentions, feed-forward layers and the logits
    assert len({tuple(value.shape) for value in matrices.values()}) == 5
    for name, value in matrices.items():
        bound = math.sqrt(6 / sum(value.shape))
        assert 0.98 * bound < float(value.detach().abs().max()) <= bound, name
        assert float(value.detach().std()) == pytest.approx(bound / math.sqrt(3), rel=0.06), name
        assert abs(float(value.detach().mean())) < 5 * bound / math.sqrt(3 * value.numel()), name


def test_embeddings_are_normal_with_the_deviation_that_their_scale_makes_one(fresh: Callable[..., Transformer]) -> None:
    model = fresh()
    for embedding in (model.source_embedding, model.target_embedding):
        weights = embedding.subwords.weight.detach()
        assert float(weights.std()) == pytest.approx(48**-0.5, rel=0.03)
        beyond = float((weights.abs() > 2 * 48**-0.5).double().mean())
        assert beyond == pytest.approx(math.erfc(2 / math.sqrt(2)), abs=0.01), "a normal tail"


def test_biases_start_at_zero_norms_at_one_and_nothing_else_is_left(fresh: Callable[..., Transformer]) -> None:
    model = fresh()
    vectors = {name: value.detach() for name, value in model.named_parameters() if value.ndim == 1}
    norms = {name: value for name, value in vectors.items() if "norm" in name}
    assert len(norms) == 2 * (2 * 2 + 2 * 3 + 2)  # weight and bias of the sub-layers' norms and of the two final ones
    for name, value in vectors.items():
        assert (value == (1 if name in norms and name.endswith("weight") else 0)).all(), name
    assert "encoder.0.self_attention.query.bias" not in vectors


def test_source_and_target_embeddings_and_logits_share_nothing(fresh: Callable[..., Transformer]) -> None:
    model = fresh(target_subwords=400)
    same_size = [
        model.source_embedding.subwords.weight,
        model.target_embedding.subwords.weight,
        model.projection.weight,
    ]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert same_size[one].data_ptr() != same_size[other].data_ptr()
        assert not torch.equal(same_size[one], same_size[other])


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_a_layer_that_lost_heads_starts_within_the_bound_of_what_is_left(fresh: Callable[..., Transformer]) -> None:
    live = {**full_heads(layers=2, heads=3), "dec_enc": ((1,), ())}
    model = fresh(live_heads=live)
    left = dict(model.named_parameters())["decoder.0.cross_attention.query.weight"].detach()
    bound = math.sqrt(6 / (48 + 9))
    assert 0.98 * bound < float(left.abs().max()) <= bound


def slow_norm(states: Tensor) -> Tensor:
    """Layer normalisation with a weight of one and a bias of zero."""
    centred = states - states.mean(-1, keepdim=True)
    return centred / ((centred**2).mean(-1, keepdim=True) + 1e-5).sqrt()


@pytest.mark.parametrize("side", ["encoder", "decoder"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_only_with_norms_before_sub_layers_is_the_last_layers_output_normed_again(
    fresh: Callable[..., Transformer], tiny_batch: Batch, norm: str, side: str
) -> None:
    model, batch = fresh(pre_norm=norm == "pre").eval(), tiny_batch
    trace: dict[str, Tensor] = {}
    memory = model.encode(batch.source, batch.source_mask, None, trace)
    states = memory if side == "encoder" else model.decode(batch.target_input, memory, batch.source_mask, None, trace)
    last = trace[f"{side}_norm.input"]
    torch.testing.assert_close(states, slow_norm(last) if norm == "pre" else last)
    torch.testing.assert_close(states, slow_norm(states), rtol=1e-3, atol=1e-3)  # normed once, either way
    assert (f"{side}_norm.weight" in model.state_dict()) is (norm == "pre")
    before_it = trace["enc_self.1.input" if side == "encoder" else "dec_self.1.input"]
    assert torch.allclose(before_it, slow_norm(before_it), rtol=1e-3, atol=1e-3) is (norm == "post")

"""Dropout at each of its four places: embeddings, attention weights, feed-forward units and sub-layer outputs.

Each place is tested where its zeros are visible: a share p is zero, and the rest is larger by 1 / (1 - p).
"""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from heads.model.attention import Attention, KeyValues, attention_weights
from heads.model.dropout import drop
from heads.model.encoder import Embedding
from heads.model.feedforward import FeedForward
from heads.model.folder import load_folder, save_folder
from heads.model.head_removal import prune
from heads.model.shape import ModelShape
from heads.model.sublayers import Residual
from heads.model.transformer import Transformer
from heads.text.batches import Batch

P, Q = 0.3, 0.2
Build = Callable[..., Transformer]


def assert_dropped(found: Tensor, whole: Tensor) -> Tensor:
    """Assert that about a share P is zero and the rest larger by 1 / (1 - P); return which are zero."""
    zero = found == 0
    torch.testing.assert_close(found, torch.where(zero, torch.zeros_like(whole), whole / (1 - P)))
    assert abs(float(zero.double().mean()) - P) < 5 * math.sqrt(P * (1 - P) / zero.numel())
    return zero


def assert_each_on_its_own(zero: Tensor) -> None:
    """Assert that neither rows nor columns [N, M] are dropped as a whole."""
    for axis in (0, 1):
        shares = zero.double().mean(axis)
        assert 0 < shares.std() < 1.5 * math.sqrt(P * (1 - P) / zero.shape[axis])


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.97])
@pytest.mark.parametrize("shape", [(1,), (3, 67), (2, 5, 7), (331, 211)])
def test_a_share_of_all_values_is_dropped_whatever_their_number(share: float, shape: tuple[int, ...]) -> None:
    torch.manual_seed(6)
    ones = torch.ones(shape, dtype=torch.float64)
    found = drop(ones, share, training=True)
    zero = found == 0
    torch.testing.assert_close(found[~zero], torch.full_like(found[~zero], 1 / (1 - share)))
    assert abs(float(zero.double().mean()) - share) < 5 * math.sqrt(share * (1 - share) / ones.numel()) + 1e-5
    again = drop(ones, share, training=True)
    assert ones.numel() < 1000 or not torch.equal(again, found)
    torch.manual_seed(6)
    torch.testing.assert_close(drop(ones, share, training=True), found, rtol=0, atol=0)
    assert drop(ones, share, training=False) is ones
    assert drop(ones, 0.0, training=True) is ones


def test_the_gradient_passes_where_values_do() -> None:
    torch.manual_seed(7)
    states = torch.ones(40, 9, dtype=torch.float64, requires_grad=True)
    found = drop(states, P, training=True)
    found.sum().backward()
    torch.testing.assert_close(states.grad, found.detach())


def test_an_embedding_is_dropped_together_with_its_position(tiny_shape: Callable[..., ModelShape]) -> None:
    torch.manual_seed(1)
    embedding, ids = Embedding(tiny_shape(width=24, dropout=P), 9), torch.arange(60).reshape(3, 20) % 9
    assert_each_on_its_own(assert_dropped(embedding(ids), embedding.eval()(ids)).flatten(0, 1))


def test_feed_forward_units_are_dropped_before_the_second_map_and_nothing_after_it() -> None:
    torch.manual_seed(2)
    layer, states = FeedForward(6, 6, P), torch.randn(80, 6)
    with torch.no_grad():  # so that all units are active and each is an output
        layer.inner.bias.fill_(9.0)
        layer.outer.weight.copy_(torch.eye(6))
        layer.outer.bias.zero_()
    zero = assert_dropped(layer(states), layer.eval()(states))
    assert_each_on_its_own(zero)
    one = FeedForward(6, 1, P)
    with torch.no_grad():
        one.inner.bias.fill_(9.0)
        one.outer.bias.copy_(torch.arange(6.0))
    change = one(states) - one.outer.bias
    none = change.abs().max(-1).values < 1e-5
    whole = one.eval()(states) - one.outer.bias
    torch.testing.assert_close(change, torch.where(none[:, None], 0.0, whole / (1 - P)), rtol=1e-4, atol=1e-4)
    assert 0 < none.sum() < 80, "all that a single unit says comes or goes together, and the bias stays"


def test_attention_weights_are_dropped_and_neither_values_nor_heads() -> None:
    torch.manual_seed(3)
    attention, queries, keys = Attention(10, 2, 5, P), torch.randn(30, 4, 10), torch.randn(30, 2, 5, 5)
    with torch.no_grad():
        attention.output.weight.copy_(torch.eye(10))
    # Each value is a dimension of its own, so a head's output is its weights.
    attended = KeyValues(keys, torch.eye(5).expand(30, 2, 5, 5))
    weights = attention_weights(attention.split(attention.query(queries)), keys, mask=None, causal=False)
    zero = assert_dropped(attention.split(attention(queries, attended)), weights)
    assert_each_on_its_own(zero.flatten(0, 2))
    # If all values are equal, each dimension of a head is the weight that was left, so these are equal too.
    alike = attention.split(attention(queries, KeyValues(keys, torch.ones(30, 2, 5, 5))))
    torch.testing.assert_close(alike, alike[..., :1].expand(-1, -1, -1, 5))
    assert alike.std() > 0.1
    torch.testing.assert_close(attention.split(attention.eval()(queries, attended)), weights)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_what_a_sub_layer_adds_is_dropped_before_the_sum_and_the_stream_is_not(
    tiny_shape: Callable[..., ModelShape], norm: str
) -> None:
    torch.manual_seed(4)
    residual = Residual(tiny_shape(dropout=P, pre_norm=norm == "pre"))
    normed: list[Tensor] = []
    residual.norm.register_forward_hook(lambda _, given, __: normed.append(given[0]))
    states, change = torch.randn(70, 10), 1 + torch.rand(70, 10)
    result = residual.leave(states, change)
    summed = result if norm == "pre" else normed[0]
    added = summed - states
    added[added.abs() < 1e-5] = 0
    assert_each_on_its_own(assert_dropped(added, change))
    assert norm == "pre" or torch.equal(result, nn.functional.layer_norm(summed, (10,)))


PLACES = (Embedding, Attention, FeedForward, Residual)


def test_every_place_of_a_model_is_told_its_dropout_and_each_alone_changes_training(
    tiny_model: Build, tiny_batch: Batch
) -> None:
    model, batch = tiny_model(dropout=P, attention_dropout=Q).train(), tiny_batch
    places = [module for module in model.modules() if isinstance(module, PLACES)]
    numbers = [sum(isinstance(module, kind) for module in places) for kind in PLACES]
    assert numbers == [2, 6, 4, 10]  # 2 + 2 layers: those of the decoder have one more attention and residual
    assert {module.dropout for module in places if not isinstance(module, Attention)} == {P}
    assert {module.dropout for module in places if isinstance(module, Attention)} == {Q}

    def states() -> Tensor:
        found: Tensor = model(batch.source, batch.source_mask, batch.target_input)
        return found[batch.target_mask].detach()

    whole = model.eval()(batch.source, batch.source_mask, batch.target_input)[batch.target_mask]
    model.train()
    for module in places:
        module.dropout = 0.0
    torch.testing.assert_close(states(), whole, msg="no other place has dropout")
    for module in places:
        module.dropout = 0.9
        seen = [torch.allclose(states(), whole) for _ in range(4)]
        module.dropout = 0.0
        assert not all(seen), f"{type(module).__name__} drops nothing"


def test_a_model_that_was_read_or_pruned_drops_nothing_until_it_is_trained(
    tiny_model: Build, tiny_batch: Batch, tmp_path: Path
) -> None:
    model, batch = tiny_model(dropout=P).float(), tiny_batch
    save_folder(model.train(), tmp_path, {}, {})
    read = load_folder(tmp_path)
    for evaluated in (read, prune(read, {"enc_self": [[True, False, True], [True] * 3]})):
        first, second = (evaluated(batch.source, batch.source_mask, batch.target_input) for _ in range(2))
        torch.testing.assert_close(first, second, rtol=0, atol=0)
        assert not evaluated.training
    assert prune(model, {}).training

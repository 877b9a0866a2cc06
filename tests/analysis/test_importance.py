"""The four forms of head importance against finite differences of the loss."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest
import torch

from heads.analysis.importance import FORMS, importance_rows
from heads.base.columns import IMPORTANCE_COLUMNS
from heads.model.head_removal import prune
from heads.model.shape import Head
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.text.batches import Batch, make_batch

SMOOTHING = 0.1
STEP = 1e-5
SENTENCES = ([[5, 12, 7, 4], [10, 4, 8]], [[9, 6], [6]], [[4, 8, 11], [9, 5, 7, 10]])
UNEVEN = {"enc_self": ((0, 2), ()), "dec_self": ((1,), (0, 1, 2)), "dec_enc": ((2,), (0, 1))}


def pairs(*numbers: int) -> Batch:
    chosen = [SENTENCES[i] for i in numbers]
    return make_batch(*([np.array(pair[side], np.int32) for pair in chosen] for side in (0, 1)))


def loss(model: Transformer, batch: Batch, gates: Gates) -> float:
    """Smoothed cross-entropy of all real target tokens, from its definition."""
    logits = model.projection(model(batch.source, batch.source_mask, batch.target_input, gates))
    chances = logits.log_softmax(-1)
    right = chances.gather(2, batch.target_output[:, :, None])[:, :, 0]
    tokens = -(1 - SMOOTHING) * right - SMOOTHING * chances.mean(2)
    return float(tokens[batch.target_mask].sum())


@torch.no_grad()
def slope(model: Transformer, batch: Batch, head: Head) -> float:
    """dL/dgate of one head at gate = 1, by a central difference."""
    ends = []
    for step in (STEP, -STEP):
        gates = {k: [torch.ones(len(h)).double() for h in v] for k, v in model.shape.live_heads.items()}
        kind, layer, number = head
        gates[kind][layer][model.shape.live_heads[kind][layer].index(number)] += step
        ends.append(loss(model, batch, gates))
    return (ends[0] - ends[1]) / (2 * STEP)


def scores(model: Transformer, batches: Iterable[Batch], form: str) -> dict[Head, float]:
    rows = importance_rows(model, batches, label_smoothing=SMOOTHING)
    assert all(tuple(row) == IMPORTANCE_COLUMNS for row in rows)
    chosen = [row for row in rows if row["form"] == form]
    return {(str(r["attention"]), int(r["layer"]), int(r["head"])): float(r["importance"]) for r in chosen}


@pytest.fixture
def model(tiny_model: Callable[..., Transformer]) -> Transformer:
    return tiny_model(live_heads=UNEVEN)


def test_every_live_head_has_a_row_of_every_form_under_its_original_number(model: Transformer) -> None:
    for form in FORMS:
        assert sorted(scores(model, [pairs(0, 1)], form)) == sorted(model.shape.heads())


@pytest.mark.parametrize(
    ("form", "batches", "apart"),
    [("signed", [(0, 1), (2,)], [(0,), (1,), (2,)]), ("example", [(1, 0, 2)], [(0,), (1,), (2,)]),
     ("batch", [(0, 1), (2,)], [(0, 1), (2,)])],
)  # fmt: skip
def test_importance_is_the_slope_of_the_loss_in_the_gate_or_its_absolute_value_by_sentence_or_by_batch(
    model: Transformer, form: str, batches: list[tuple[int, ...]], apart: list[tuple[int, ...]]
) -> None:
    for head, value in scores(model, [pairs(*numbers) for numbers in batches], form).items():
        slopes = [slope(model, pairs(*numbers), head) for numbers in apart]
        expected = sum(slopes if form == "signed" else map(abs, slopes)) / 3
        assert value == pytest.approx(expected, rel=1e-6, abs=1e-9)


@torch.no_grad()
def loss_when_scaled(model: Transformer, batch: Batch, *, position: int, factor: float) -> float:
    """The loss when the second live head of the last cross-attention is scaled at one target position."""

    def scale(_: torch.nn.Module, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        merged = inputs[0].clone()
        merged[:, position, 2:4] *= factor
        return (merged,)

    output = dict(model.named_modules())["decoder.1.cross_attention.output"]
    handle = output.register_forward_pre_hook(scale)
    value = loss(model, batch, {})
    handle.remove()
    return value


def test_importance_per_token_equals_the_absolute_slopes_in_a_factor_at_every_position(model: Transformer) -> None:
    batch, expected = pairs(2), 0.0
    for position in range(batch.target_input.shape[1]):
        ends = [loss_when_scaled(model, batch, position=position, factor=1 + step) for step in (STEP, -STEP)]
        expected += abs(ends[0] - ends[1]) / (2 * STEP)
    assert scores(model, [batch], "token")["dec_enc", 1, 1] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("form", ["example", "token", "signed"])
def test_padding_and_batch_mates_change_nothing_but_the_form_per_batch(model: Transformer, form: str) -> None:
    together, alone = [pairs(0, 1, 2)], [pairs(2), pairs(1), pairs(0)]
    assert scores(model, together, form) == pytest.approx(scores(model, alone, form), rel=1e-9, abs=1e-12)
    assert scores(model, together, "batch") != pytest.approx(scores(model, alone, "batch"), rel=1e-2)


def test_a_frozen_model_and_gradients_switched_off_give_the_same(model: Transformer) -> None:
    expected = scores(model, [pairs(0, 1)], "token")
    with torch.no_grad():
        assert scores(model.requires_grad_(requires_grad=False), [pairs(0, 1)], "token") == expected


def test_heads_left_by_pruning_are_as_important_as_where_the_others_are_silent(
    tiny_model: Callable[..., Transformer],
) -> None:
    left = [("dec_self", 0, 0), ("dec_self", 0, 2), ("dec_self", 1, 1)]
    whole = tiny_model()
    with torch.no_grad():
        for kind, layer, head in whole.shape.heads():
            if kind == "dec_self" and (kind, layer, head) not in left:
                whole.decoder[layer].self_attention.output.weight[:, 2 * head : 2 * head + 2] = 0  # type: ignore
    smaller = prune(whole, {"dec_self": [[True, False, True], [False, True, False]]})
    found, expected = (scores(each, [pairs(0, 1)], "token") for each in (smaller, whole))
    assert [head for head in found if head[0] == "dec_self"] == left
    assert found == pytest.approx({head: expected[head] for head in found})


def test_no_sentence_at_all_is_an_error(model: Transformer) -> None:
    with pytest.raises(ValueError, match="at least one sentence"):
        importance_rows(model, [], label_smoothing=0.0)

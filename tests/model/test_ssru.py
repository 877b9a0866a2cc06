"""The recurrent unit against its definition in loops, its decoder step by step, and with self-attention instead."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from few_heads import RECURRENT, assert_steps_are_those_at_once, random_batch
from heads.analysis.ablation import gates_without
from heads.base.files import UserError
from heads.model.grown import with_self_attention
from heads.model.head_removal import check_equal, prune
from heads.model.ssru import Scan, Ssru
from heads.model.transformer import Transformer
from heads.text.batches import Batch
from heads.training import devices
from heads.training.loop import Training

Build = Callable[..., Transformer]
B, T, D = 2, 5, 3
"""Sentences, positions, width."""
OPEN = {"enc_self": [[True, False, True], [False] * 3], "dec_enc": [[False, True, True], [False, False, True]]}


def random_unit() -> tuple[Ssru, Tensor]:
    """A float64 unit without zeros, and states for it [B, T, D]."""
    torch.manual_seed(4)
    unit = Ssru(D).double()
    for value in unit.parameters():
        value.data = torch.randn_like(value)
    return unit, torch.randn(B, T, D, dtype=torch.float64)


def slow_scan(forget: Tensor, added: Tensor) -> Tensor:
    """c_t = f_t * c_{t-1} + a_t, number by number."""
    sentences = []
    for b in range(len(added)):
        cells = [torch.zeros(added.shape[2]).to(added)]
        for t in range(added.shape[1]):
            cells.append(forget[b, t] * cells[-1] + added[b, t])
        sentences.append(torch.stack(cells[1:]))
    return torch.stack(sentences)


def slow_unit(unit: Ssru, states: Tensor) -> Tensor:
    """Kim et al. 2019, eq. 1 to 3, a position at a time, without the norm around it."""
    outputs = []
    for sentence in states:
        cell, found = torch.zeros(D).to(states), []
        for x in sentence:
            f = 1 / (1 + (-(unit.forget.weight @ x + unit.forget.bias)).exp())
            cell = f * cell + (1 - f) * (unit.candidate.weight @ x)
            found.append(cell.clamp(min=0))
        outputs.append(torch.stack(found))
    return torch.stack(outputs)


@pytest.mark.parametrize("length", [1, 2, T])
def test_the_scan_and_its_gradient_are_those_of_a_loop(length: int) -> None:
    generator = torch.Generator().manual_seed(1)
    forget, added, wanted = (torch.randn(B, length, D, generator=generator).double() for _ in range(3))
    inputs = [part.requires_grad_() for part in (forget.sigmoid(), added)]
    expected, found = slow_scan(*inputs), Scan.apply(*inputs)
    torch.testing.assert_close(found, expected)
    slow, fast = (torch.autograd.grad((out * wanted).sum(), inputs, allow_unused=True) for out in (expected, found))
    for one, other in zip(fast, slow, strict=True):
        torch.testing.assert_close(one, other)
    assert torch.autograd.gradcheck(Scan.apply, inputs)


def test_the_unit_is_its_definition_also_step_by_step_and_as_a_weighting_of_candidates() -> None:
    unit, states = random_unit()
    expected = slow_unit(unit, states)
    assert 0.1 < (expected == 0).double().mean() < 0.9
    torch.testing.assert_close(unit(states), expected)
    cell = torch.zeros(B, 1, D).double()
    for t in range(T):
        found, cell = unit.step(states[:, t : t + 1], cell)
        torch.testing.assert_close(found, expected[:, t : t + 1])
    weights, candidates = unit.weights(states)
    torch.testing.assert_close(torch.einsum("bdts,bsd->btd", weights, candidates).relu(), expected)
    assert (weights.triu(1) == 0).all() and (weights.sum(-1) < 1).all()


def test_a_unit_has_one_bias_and_starts_from_nothing() -> None:
    unit, states = random_unit()
    assert {name for name, _ in unit.named_parameters()} == {"forget.weight", "forget.bias", "candidate.weight"}
    unit.forget.weight.data.zero_()
    unit.forget.bias.data.fill_(-50.0)
    torch.testing.assert_close(unit(states), (states @ unit.candidate.weight.T).relu())
    unit.forget.bias.data.fill_(50.0)
    torch.testing.assert_close(unit(states), torch.zeros_like(states))


@pytest.mark.parametrize("order", ["pre-norm", "post-norm"])
def test_a_recurrent_decoder_gives_step_by_step_what_it_gives_all_at_once(
    tiny_model: Build, tiny_batch: Batch, order: str
) -> None:
    assert_steps_are_those_at_once(tiny_model(pre_norm=order == "pre-norm", **RECURRENT), tiny_batch)


def test_a_position_changes_nothing_before_it(tiny_model: Build, tiny_batch: Batch) -> None:
    model, changed = tiny_model(**RECURRENT), tiny_batch.target_input.clone()
    changed[0, 2] = 5
    assert changed[0, 2] != tiny_batch.target_input[0, 2]
    before, after = (
        model(tiny_batch.source, tiny_batch.source_mask, ids) for ids in (tiny_batch.target_input, changed)
    )
    torch.testing.assert_close(after[:, :2], before[:, :2])
    assert (after[0, 2:] != before[0, 2:]).any(-1).all()


@torch.no_grad()
def test_removing_heads_of_a_recurrent_model_equals_masking_them(tiny_model: Build) -> None:
    model, batch = tiny_model(**RECURRENT), random_batch(2, seed=3)
    smaller = prune(model, OPEN)
    closed = {head for head in model.shape.heads() if not OPEN[head[0]][head[1]][head[2]]}
    given = (batch.source, batch.source_mask, batch.target_input)
    masked = model(*given, gates_without(model, closed))
    assert not torch.allclose(masked, model(*given))
    torch.testing.assert_close(smaller(*given), masked)
    assert smaller.shape.heads() == tuple(head for head in model.shape.heads() if head not in closed)
    check_equal(model, smaller, OPEN)


def test_an_update_in_bf16_has_finite_gradients_near_those_of_fp32(
    new_training: Callable[..., Training], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices.torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    cells = []

    def watched(self: Ssru, states: Tensor) -> tuple[Tensor, Tensor]:
        cells.append(gated(self, states)[1].dtype)
        return gated(self, states)

    gated = Ssru.gated
    monkeypatch.setattr(Ssru, "gated", watched)
    losses, gradients = [], []
    for precision in ("fp32", "bf16"):
        training = new_training(precision=precision, model=RECURRENT)
        losses.append(float(training.step(np.arange(20))["loss"]))
        found = [value.grad for value in training.model.parameters() if value.grad is not None]
        assert len(found) == len([*training.model.parameters()])
        gradients.append(torch.cat([gradient.flatten() for gradient in found]))
        assert gradients[-1].isfinite().all()
    assert set(cells) == {torch.float32}, "cells are summed in fp32"
    assert losses[0] != losses[1] == pytest.approx(losses[0], rel=0.01)
    assert torch.cosine_similarity(gradients[0], gradients[1], dim=0) > 0.99


def test_all_that_is_not_a_recurrent_unit_stays_and_self_attention_alone_is_new(tiny_model: Build) -> None:
    model = tiny_model(**RECURRENT)
    for name, value in model.named_parameters():  # norms unlike those of a fresh model
        if ".recurrence_residual." in name:
            value.data.normal_()
    grown, new = with_self_attention(model, seed=3)
    old, now = model.state_dict(), grown.state_dict()
    assert grown.shape.kinds == ("enc_self", "dec_self", "dec_enc") and not grown.shape.recurrent
    assert len(grown.shape.heads(("dec_self",))) == model.shape.decoder_layers * model.shape.original_heads
    names = {id(value): name for name, value in grown.named_parameters()}
    assert {names[id(value)] for value in new} == {
        name for name in now if ".self_attention." in name and name[0] == "d"
    }
    for name, value in now.items():
        if ".self_attention." in name and name.startswith("decoder"):
            continue
        assert torch.equal(value, old[name.replace(".self_residual.", residual(name))]), name
    gone = {name for name in old if ".recurrence." in name}
    assert len(gone) == 3 * model.shape.decoder_layers
    assert len(now) == len(old) - len(gone) + len(new)


def residual(name: str) -> str:
    """The old name of the norm around the first part of a layer."""
    return ".recurrence_residual." if name.startswith("decoder") else ".self_residual."


def test_its_output_begins_at_three_tenths_of_what_fresh_weights_have_and_by_the_seed(tiny_model: Build) -> None:
    model = tiny_model(**RECURRENT)
    first, again, other = (with_self_attention(model, seed)[0].state_dict() for seed in (3, 3, 4))
    query, output = (f"decoder.0.self_attention.{name}.weight" for name in ("query", "output"))
    bound = (6 / sum(first[output].shape)) ** 0.5
    assert 0.8 * 0.3 * bound < float(first[output].abs().max()) <= 0.3 * bound
    assert float(first[query].abs().max()) > 0.8 * bound
    assert torch.equal(first[query], again[query])
    assert not torch.equal(first[query], other[query])


def test_it_translates_step_by_step_as_all_at_once(tiny_model: Build) -> None:
    grown, _ = with_self_attention(tiny_model(**RECURRENT).eval(), seed=1)
    assert not grown.training
    assert_steps_are_those_at_once(grown, random_batch(3, seed=2))


def test_a_decoder_with_self_attention_is_refused(tiny_model: Build) -> None:
    with pytest.raises(UserError, match=r"^baseline\.decoder: self_attention needs a decoder with recurrent units"):
        with_self_attention(tiny_model(), seed=1)

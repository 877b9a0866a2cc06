"""A decoder that gets self-attention in place of its recurrent units keeps everything else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from few_heads import RECURRENT, assert_steps_are_those_at_once, random_batch
from heads.base.files import UserError
from heads.model.grown import with_self_attention
from heads.model.transformer import Transformer

Build = Callable[..., Transformer]


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

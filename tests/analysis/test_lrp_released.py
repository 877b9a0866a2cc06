"""Rules of the released code against that code written out, and their differences from the textbook rules."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import partial

import pytest
import torch
from test_lrp import randn
from test_lrp_model import HEADLESS, LiveHeads, random_batch, random_model, walks
from torch import Tensor, nn

from heads.analysis.lrp.released import Voita2019
from heads.analysis.lrp.rows import rule_of
from heads.analysis.lrp.rules import Account, Attended, Rule
from heads.analysis.lrp.steps import head_relevance
from heads.base.names import ATTENTIONS
from lrp_released_twin import Code2019, ReleasedTwin

CODES = [(Voita2019(), Code2019(1e-7)), (Voita2019(0.01), Code2019(0.01))]
"""The position of eps matters only when it is large."""
code = pytest.mark.parametrize(("rule", "code"), CODES, ids=["2019", "2019, large eps"])


def account(*, apart: bool = False) -> Account:
    """An account for two sentences with three steps, or, if apart, with three positions that are steps."""
    return Account(torch.zeros((2, 1, 3) if apart else (2, 3), dtype=torch.float64))


def positive(*shape: int) -> Tensor:
    """Random non-negative relevance, as in the released code."""
    return randn(*shape, seed=8).abs()


def steps() -> Iterable[tuple[int, int]]:
    """Indices of two sentences with three steps each."""
    return itertools.product(range(2), range(3))


@code
@pytest.mark.parametrize("bias", ["with a bias", ""])
@torch.no_grad()
def test_a_linear_map_shares_relevance_as_the_code_does(rule: Rule, code: Code2019, bias: str) -> None:
    torch.manual_seed(1)
    layer, inputs, relevance = nn.Linear(4, 5, bias=bool(bias)).double(), randn(2, 3, 4), positive(2, 3, 3, 5)
    inputs[:, 1, 2] = 0.0
    found = rule.linear(layer, inputs, layer(inputs))(relevance, account())
    for b, g in steps():
        expected = code.dense(inputs[b], layer.weight, layer.bias, relevance[b, g])
        torch.testing.assert_close(found[b, g], expected)


@code
@torch.no_grad()
def test_a_linear_map_keeps_steps_apart_that_are_positions(rule: Rule, code: Code2019) -> None:
    torch.manual_seed(1)
    layer, inputs, relevance = nn.Linear(4, 5).double(), randn(2, 3, 4), positive(2, 1, 3, 5)
    found = rule.linear(layer, inputs, layer(inputs))(relevance, account(apart=True))
    for b, q in steps():
        expected = code.dense(inputs[b, q : q + 1], layer.weight, layer.bias, relevance[b, 0, q : q + 1])
        torch.testing.assert_close(found[b, 0, q : q + 1], expected)


@code
@torch.no_grad()
def test_a_residual_sum_shares_relevance_as_the_code_does(rule: Rule, code: Code2019) -> None:
    stream, change, relevance = randn(2, 3, 5), randn(2, 3, 5, seed=2), positive(2, 3, 3, 5)
    found = rule.add(stream, change)(relevance, account())
    for b, g in steps():
        for side, expected in zip(found, code.add(stream[b], change[b], relevance[b, g]), strict=True):
            torch.testing.assert_close(side[b, g], expected)


@code
@pytest.mark.parametrize("own", ["own", ""])
@torch.no_grad()
def test_an_attention_shares_relevance_as_the_code_does(rule: Rule, code: Code2019, own: str) -> None:
    keys_count = 4 if own else 5
    queries = randn(2, 3, 4, 2)
    keys, values = randn(2, 3, keys_count, 2, seed=2), randn(2, 3, keys_count, 2, seed=3)
    mask = torch.full((4, keys_count), -torch.inf, dtype=torch.float64).triu(1)
    weights = (queries @ keys.transpose(-1, -2) / 2**0.5 + mask).softmax(-1)
    seen = Attended(queries, keys, values, weights, weights @ values, own=bool(own))
    relevance = positive(2, 3, 4, 3, 2)
    found = rule.attention(seen)(relevance, account())
    for b, g in steps():
        parts = [part[b].transpose(0, 1).flatten(1) for part in (queries, keys, values)]
        expected = code.core(3, parts, mask, relevance[b, g].flatten(1))
        for one, other in zip((found.queries, found.keys, found.values), expected, strict=True):
            assert one is not None
            torch.testing.assert_close(one[b, g].flatten(1), other)


@code
@torch.no_grad()
def test_a_logit_hands_relevance_one_to_its_state(rule: Rule, code: Code2019) -> None:
    weight, bias, states = randn(2, 3, 4), randn(2, 3, seed=2), randn(2, 3, 4, seed=3)
    found, absorbed = rule.top(weight, bias, states, (weight * states).sum(-1) + bias)
    assert not absorbed.any()
    for b, q in steps():
        one = torch.ones(1, 1, dtype=torch.float64)
        expected = code.dense(states[b, q][None], weight[b, q][None], bias[b, q][None], one)
        torch.testing.assert_close(found[b, q], expected[0])


@code
@pytest.mark.parametrize("order", ["pre-norm", "post-norm"])
@pytest.mark.parametrize("live", [None, HEADLESS], ids=["all-heads", "layers-without-heads"])
@torch.no_grad()
def test_the_walk_through_a_model_equals_the_code(rule: Rule, code: Code2019, order: str, live: LiveHeads) -> None:
    model, batch = random_model(pre_norm=order == "pre-norm", live=live), random_batch([(3, 4), (2, 2)])
    found, expected = head_relevance(model, batch, rule), walks(partial(ReleasedTwin, code=code), model, batch)
    assert len(expected) == 8
    for step, (met, _, _) in enumerate(expected):
        for kind, layer in itertools.product(ATTENTIONS, range(2)):
            torch.testing.assert_close(found.heads[kind][layer][step], met[f"{kind}.{layer}"].double())
    left = torch.tensor([amount for _, amount, _ in expected], dtype=torch.float64)
    torch.testing.assert_close(found.places["enc_self.0"][:, 0], left)


def test_the_names_stand_for_the_codes_with_their_own_constants() -> None:
    assert rule_of("voita-2019", 0.5) == Voita2019(1e-7)

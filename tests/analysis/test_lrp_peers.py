"""LRP rules against other libraries: captum (epsilon, z-plus) and the authors' own LXT (AttnLRP).

Zennit has the first two as well, but does not import without torchvision; its alpha-beta subtracts (alpha - beta = 1)
where the code of Voita et al. adds, which no library does.
"""

import pytest
import torch
from captum.attr import LRP
from captum.attr._utils.lrp_rules import Alpha1_Beta0_Rule, EpsilonRule, PropagationRule
from lxt.explicit import functional
from test_lrp import randn
from torch import Tensor, nn

from heads.analysis.lrp.rows import rule_of
from heads.analysis.lrp.rules import Account, Attended


def perceptron(*, bias: bool) -> tuple[nn.Linear, nn.Linear]:
    """Two linear layers, 6 to 7 to 5."""
    torch.manual_seed(3)
    return nn.Linear(6, 7, bias=bias).double(), nn.Linear(7, 5, bias=bias).double()


def ours(name: str, layers: tuple[nn.Linear, nn.Linear], inputs: Tensor, target: int) -> Tensor:
    """Relevance [B, 6] of output `target` by our rule, with a ReLU between the layers."""
    rule, account = rule_of(name, 1e-13), Account(torch.zeros(len(inputs), 1))
    hidden = layers[0](inputs)[:, None].relu()
    outputs = layers[1](hidden)
    start = torch.zeros_like(outputs)[:, None]
    start[..., target] = 1.0
    inner, outer = ((layer.weight, layer.bias) for layer in layers)
    multiplier = rule.linear(*outer, hidden, outputs)(start, account)
    return inputs * rule.linear(*inner, inputs[:, None], hidden)(multiplier, account)[:, 0, 0]


def theirs(rule: type[PropagationRule], layers: tuple[nn.Linear, nn.Linear], inputs: Tensor, target: int) -> Tensor:
    """The same relevance by captum."""
    for layer in layers:
        chosen = rule()
        chosen.STABILITY_FACTOR = 1e-13
        layer.rule = chosen
    attributed: Tensor = LRP(nn.Sequential(layers[0], nn.ReLU(), layers[1])).attribute(inputs, target=target)
    return attributed.detach()


@pytest.mark.parametrize(("name", "bias"), [("plain", ""), ("attnlrp", "with biases"), ("attnlrp", "")])
def test_linear_maps_and_a_relu_share_as_captums_epsilon_rule(name: str, bias: str) -> None:
    layers, inputs = perceptron(bias=bool(bias)), randn(4, 6)
    with torch.no_grad():
        found = ours(name, layers, inputs, 2)
    torch.testing.assert_close(found, theirs(EpsilonRule, layers, inputs, 2), rtol=1e-6, atol=1e-8)


def test_linear_maps_share_as_captums_alpha_one_beta_zero_where_inputs_are_not_negative() -> None:
    layers, inputs = perceptron(bias=False), randn(4, 6).abs()
    with torch.no_grad():
        found = ours("z-plus", layers, inputs, 2)
    torch.testing.assert_close(found, theirs(Alpha1_Beta0_Rule, layers, inputs, 2), rtol=1e-6, atol=1e-8)


def test_a_layer_norm_shares_as_lxts() -> None:
    norm, inputs, multiplier = nn.LayerNorm(6).double(), randn(2, 3, 6), randn(2, 1, 3, 6, seed=2)
    nn.init.normal_(norm.weight, generator=torch.Generator().manual_seed(2))
    nn.init.normal_(norm.bias, generator=torch.Generator().manual_seed(3))
    leaf = inputs.clone().requires_grad_()
    outputs = functional.layer_norm(leaf, norm.weight, norm.bias, norm.eps)
    outputs.backward(multiplier[:, 0] * outputs.detach())
    with torch.no_grad():
        back = rule_of("attnlrp", 0.0).norm(norm, inputs)
        found = inputs * back(multiplier, Account(torch.zeros(2, 1)))[:, 0]
    torch.testing.assert_close(found, leaf.grad, rtol=1e-3, atol=1e-4)  # LXT adds 1e-6 to denominators


def test_an_attention_shares_as_lxts_through_products_and_softmax() -> None:
    query, key, value = randn(4, 2), randn(5, 2, seed=2), randn(5, 2, seed=3)
    leaves = [part.clone().requires_grad_() for part in (query / 2**0.5, key, value)]
    scores = functional.matmul(leaves[0], leaves[1].T, epsilon=1e-13)
    weights = functional.softmax(scores, -1)
    outputs = functional.matmul(weights, leaves[2], epsilon=1e-13)
    multiplier = randn(4, 2, seed=4)
    outputs.backward(multiplier * outputs.detach())
    parts = [part.detach()[None, None] for part in (query, key, value, weights, outputs)]
    seen = Attended(parts[0], parts[1], parts[2], parts[3], parts[4], own=False)
    account = Account(torch.zeros(1, 1, dtype=torch.float64))
    found = rule_of("attnlrp", 0.0).attention(seen)(multiplier[None, None, :, None], account)
    for part, met, leaf in zip((query, key, value), (found.queries, found.keys, found.values), leaves, strict=True):
        assert met is not None
        torch.testing.assert_close(part * met[0, 0, :, 0], leaf.grad, rtol=1e-6, atol=1e-9)

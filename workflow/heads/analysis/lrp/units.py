"""Relevance through the hidden units of a feed-forward network. Shape letters as in `heads.analysis.lrp.rules`."""

from torch import Tensor

from heads.analysis.lrp.rules import Account, Back, Rule, unchanged
from heads.model.feedforward import FeedForward


def through_units(rule: Rule, network: FeedForward, entered: Tensor) -> tuple[Tensor, Back]:
    """The hidden units [B, Q, V] of states [B, Q, D], and the way back from them to these."""
    sums = network.inner(entered)
    activated = network.activate(sums)
    # The rule of a linear map includes a ReLU; any other activation passes relevance on, in units of the sums.
    smooth = network.activation != "relu" or network.factor is not None
    activation = rule.activation(sums, activated) if smooth else unchanged
    inner = rule.linear(network.inner.weight, network.inner.bias, entered, sums if smooth else activated)
    if network.factor is None:
        return activated, lambda multiplier, account: inner(activation(multiplier, account), account)
    factors = network.factor(entered)
    factor = rule.linear(network.factor.weight, network.factor.bias, entered, factors)
    product = rule.product(activated, factors)

    def back(multiplier: Tensor, account: Account) -> Tensor:
        """The multiplier of the states, from that of the units."""
        at_activated, at_factors = product(multiplier, account)
        return inner(activation(at_activated, account), account) + factor(at_factors, account)

    return activated * factors, back

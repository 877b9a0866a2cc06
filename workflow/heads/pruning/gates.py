"""Stochastic gates on heads and hidden units: the hard-concrete distribution.

Louizos et al. 2018; Voita et al. 2019, sec. 6.1.

s = sigmoid((log u - log(1 - u) + log_alpha) / temperature) for uniform u is stretched to (low, high) and clipped to
[0, 1], which puts probability mass on exactly 0 and exactly 1. `penalty` penalises the sum over heads of P(gate > 0).
A hidden unit of a feed-forward network is multiplied by its gate as a head's output is by its own.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heads.base.columns import GATE_COLUMNS
from heads.base.files import UserError
from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.base.targets import Target, groups_of
from heads.config.trainings import HardConcrete
from heads.model.shape import ModelShape

UNIFORM_EDGE = 1e-6
"""The distance that uniform noise keeps from 0 and 1, so that its logarithms are finite (as in the authors' code)."""


def sample(log_alpha: Tensor, noise: Tensor, shape: HardConcrete) -> Tensor:
    """Sample gates in [0, 1], in the shape of `log_alpha`, from uniform `noise` in [0, 1)."""
    noise = noise.clamp(UNIFORM_EDGE, 1 - UNIFORM_EDGE)
    concrete = torch.sigmoid((noise.log() - (1 - noise).log() + log_alpha) / shape.temperature)
    return (concrete * (shape.high - shape.low) + shape.low).clamp(0, 1)


def probability_open(log_alpha: Tensor, shape: HardConcrete) -> Tensor:
    """P(gate > 0), each gate's term in the penalty (Louizos et al. 2018, eq. 12)."""
    return torch.sigmoid(log_alpha - shape.temperature * math.log(-shape.low / shape.high))


def probability_one(log_alpha: Tensor, shape: HardConcrete) -> Tensor:
    """P(gate = 1)."""
    return torch.sigmoid(log_alpha - shape.temperature * math.log((1 - shape.low) / (shape.high - 1)))


def is_open(log_alpha: Tensor, shape: HardConcrete) -> Tensor:
    """Whether a gate is 1 after training, that is whether P(gate = 1) > P(gate = 0), as in the paper."""
    return probability_one(log_alpha, shape) > 1 - probability_open(log_alpha, shape)


def strictly_between(log_alpha: Tensor, shape: HardConcrete) -> Tensor:
    """Whether the gate that the authors' code would use at test time is neither 0 nor 1."""
    gate = torch.sigmoid(log_alpha) * (shape.high - shape.low) + shape.low
    return (gate > 0) & (gate < 1)


@dataclass(frozen=True, slots=True)
class Budget:
    """The number of heads to keep in total in some kinds of attention, or of hidden units in some stacks."""

    kinds: tuple[str, ...]
    keep: int


def budgets_of(target: Target, scope: str, model: ModelShape) -> tuple[Budget, ...]:
    """The budgets of a target: one for the whole scope (`keep-12`) or one for each kind (`keep-4-6-8`).

    Budgets by kind of attention are in the order of ATTENTIONS; kinds that the model lacks have none. Where heads and
    hidden units have gates, they have a budget each (`keep-12-512`).

    Raises UserError for a budget of more heads than there are, and for a number of budgets that does not fit the scope.
    """
    budgets = []
    groups = groups_of(target, scope, model.kinds_in(scope), f"{target} has {len(target.budgets)} budgets")
    for group, number in zip(groups, target.budgets, strict=True):
        there, what = len(model.heads_and_units(group)), "units" if group[0] in FEEDFORWARDS else "heads"
        if number > there:
            raise UserError(
                f"{target} asks for {number} {what} of {' and '.join(group)}, but there are only {there}: lower it."
            )
        budgets.append(Budget(tuple(group), number))
    return tuple(budgets)


class TrainableGates(nn.Module):
    """Gates on all live heads and hidden units of a scope, trained with the model; values are by kind and layer."""

    def __init__(self, model: ModelShape, scope: str) -> None:
        super().__init__()
        self.kinds = model.kinds_in(scope)
        """The kinds of attention, and the feed-forward stacks, that have gates."""
        self.unit_cost = (3 if model.gated_units else 2) / (4 * model.head_width)
        """What an open hidden unit costs of what an open head costs: 2 or 3 D weights of 4 D d, d a head's width."""

    def sampled(self, generator: torch.Generator) -> dict[str, list[Tensor]]:
        """Sample the gates of one update, shared by all its sentences; the generator must be on their device."""
        raise NotImplementedError

    def binary(self) -> dict[str, list[Tensor]]:
        """Gates of the finished model, zeros and ones."""
        raise NotImplementedError

    def logits(self) -> dict[str, list[Tensor]]:
        """The trained logit of each gate; the larger it is, the more likely the head is open."""
        raise NotImplementedError

    def chances(self) -> dict[str, list[Tensor]]:
        """P(gate > 0) of every head and unit."""
        raise NotImplementedError

    def between(self) -> dict[str, list[Tensor]]:
        """Whether the gate that the authors' code would use at test time is neither 0 nor 1."""
        raise NotImplementedError

    def expected_open(self, kinds: Sequence[str] = ATTENTIONS) -> Tensor:
        """Expected number of open heads of some kinds of attention, or units of stacks: the sum of P(gate > 0)."""
        return torch.cat(
            [chance for kind, layers in self.chances().items() if kind in kinds for chance in layers]
        ).sum()

    def counts(self) -> dict[str, Tensor]:
        """The expected numbers of open heads and of open hidden units, of those that have gates, to log."""
        names = {"expected_open_heads": ATTENTIONS, "expected_open_units": FEEDFORWARDS}
        return {name: self.expected_open(all_).detach() for name, all_ in names.items() if {*all_} & {*self.kinds}}

    def expected_cost(self, kinds: Sequence[str] | None = None) -> Tensor:
        """The expected cost of what is open, in heads; of an open unit it is `unit_cost`. kinds: if not all."""
        kinds = self.kinds if kinds is None else kinds
        heads, units = ([kind for kind in kinds if (kind in FEEDFORWARDS) is are_units] for are_units in (False, True))
        if not units:
            return self.expected_open(heads)
        cost = self.unit_cost * self.expected_open(units)
        return cost + self.expected_open(heads) if heads else cost


class HardConcreteGates(TrainableGates):
    """A hard-concrete gate for every live head, and hidden unit, of a scope."""

    def __init__(self, model: ModelShape, scope: str, shape: HardConcrete, budgets: Sequence[Budget] = ()) -> None:
        """budgets: how many heads or units the finished model keeps; if empty, each gate decides for itself."""
        super().__init__(model, scope)
        self.shape, self.budgets = shape, tuple(budgets)
        self.log_alpha = nn.ParameterDict()
        for kind in self.kinds:
            for layer, live in enumerate(model.members(kind)):
                self.log_alpha[f"{kind}:{layer}"] = nn.Parameter(torch.full((len(live),), shape.log_alpha_init))

    def sampled(self, generator: torch.Generator) -> dict[str, list[Tensor]]:
        """See `TrainableGates`."""
        return self._each(lambda a: sample(a, torch.rand(a.shape, generator=generator, device=a.device), self.shape))

    def open_heads(self) -> dict[str, Tensor]:
        """Whether the finished model keeps each head [H] or unit, by the names of `log_alpha`.

        With budgets, those with the largest log_alpha stay, the first ones on a tie, so that their number is exact.
        """
        if not self.budgets:
            found = self._each(lambda log_alpha: is_open(log_alpha, self.shape))
            return dict(zip(self.log_alpha, (layer for layers in found.values() for layer in layers), strict=True))
        kept: dict[str, Tensor] = {}
        for budget in self.budgets:
            mine = {name: one for name, one in self.log_alpha.items() if name.split(":")[0] in budget.kinds}
            order = torch.cat([log_alpha.detach() for log_alpha in mine.values()]).argsort(descending=True, stable=True)
            stays = torch.zeros_like(order, dtype=torch.bool).index_fill(0, order[: budget.keep], 1)
            kept |= dict(zip(mine, stays.split([len(log_alpha) for log_alpha in mine.values()]), strict=True))
        return kept

    def binary(self) -> dict[str, list[Tensor]]:
        """See `TrainableGates`."""
        return by_kind({name: stays.float() for name, stays in self.open_heads().items()})

    def logits(self) -> dict[str, list[Tensor]]:
        """See `TrainableGates`."""
        return by_kind(self.log_alpha)

    def chances(self) -> dict[str, list[Tensor]]:
        """See `TrainableGates`."""
        return self._each(lambda log_alpha: probability_open(log_alpha, self.shape))

    def between(self) -> dict[str, list[Tensor]]:
        """See `TrainableGates`."""
        return self._each(lambda log_alpha: strictly_between(log_alpha, self.shape))

    def _each(self, change: Callable[[Tensor], Tensor]) -> dict[str, list[Tensor]]:
        """What `change` makes of all log_alpha at once: by layers, a GPU would start twenty times as many kernels."""
        if not self.log_alpha:
            return {}
        changed = change(torch.cat([*self.log_alpha.values()])).split([len(one) for one in self.log_alpha.values()])
        return by_kind(dict(zip(self.log_alpha, changed, strict=True)))


def by_kind(layers: Mapping[str, Tensor] | nn.ParameterDict) -> dict[str, list[Tensor]]:
    """Values of layers, named `kind:layer`, as a list for each kind of attention."""
    found: dict[str, list[Tensor]] = {}
    for name, values in layers.items():
        found.setdefault(name.split(":")[0], []).append(values)
    return found


def gate_rows(gates: TrainableGates, shape: ModelShape) -> list[dict[str, Any]]:
    """A row for every gated head, under its original index, and unit; `log_alpha` has the logit of any kind of gate.

    Of a unit, the column `attention` has its feed-forward stack.
    """
    values = (gates.logits(), gates.chances(), gates.binary(), gates.between())
    columns = [[one for layers in each.values() for layer in layers for one in layer.tolist()] for each in values]
    return [
        dict(zip(GATE_COLUMNS, (*head, logit, chance, int(stays), int(between)), strict=True))
        for head, logit, chance, stays, between in zip(shape.heads_and_units(values[0].keys()), *columns, strict=True)
    ]

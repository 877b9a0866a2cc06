"""The penalty on open heads: lambda times the expected number of open heads (Voita et al. 2019, sec. 6.1).

Lambda is a constant, as in the paper, or adjusted until a given number of heads is left. An open hidden unit costs as
much for each of its weights as a head, as in CoFi (Xia, Zhong and Chen 2022), where what is left is counted in weights.
"""

import torch
from torch import Tensor, nn

from heads.base.files import UserError
from heads.base.names import UNIT_SCOPES
from heads.base.targets import SUBSET, Target
from heads.config.trainings import GatesSettings
from heads.model.shape import ModelShape
from heads.pruning.gates import HardConcreteGates, TrainableGates, budgets_of
from heads.pruning.subset_gates import SubsetGates


class Penalty(nn.Module):
    """A constant penalty on open heads: lambda nats per target token per head."""

    def __init__(self, lam: Tensor) -> None:
        """lam: one value for all heads, or one for each budget."""
        super().__init__()
        self.lam: Tensor
        self.register_buffer("lam", lam.double())

    def forward(self, gates: TrainableGates) -> Tensor:
        """Lambda times the expected number of open heads, and of open units as shares of a head."""
        return self.lam[0] * gates.expected_cost()

    def adjust(self, gates: TrainableGates, done: float) -> None:
        """Adjust lambda after an update, unless it is constant; `done` is the share of updates done so far."""


class DrivenPenalty(Penalty):
    """A lambda for each budget, raised while too many heads or units are open and lowered while too few are.

    The wanted number falls from all heads to the budget over the first part of the training and then stays, so that
    heads close one by one and the rest have time to adapt.
    """

    START, LOWEST, HIGHEST = 0.01, 1e-5, 10.0
    DESCENT = 0.6
    """Share of the updates over which the wanted number falls."""
    PROPORTIONAL, INTEGRAL = 40.0, 800.0
    """How strongly log lambda follows the share of excess heads: at once, and over the length of a training."""

    def __init__(self, gates: HardConcreteGates) -> None:
        super().__init__(torch.full((len(gates.budgets),), self.START))
        self.excess: Tensor
        self.register_buffer("excess", torch.zeros(len(gates.budgets), dtype=torch.float64))
        self.done: Tensor
        self.register_buffer("done", torch.zeros((), dtype=torch.float64))
        self.budgets = gates.budgets
        self.heads = [
            sum(len(a) for name, a in gates.log_alpha.items() if name.split(":")[0] in budget.kinds)
            for budget in gates.budgets
        ]

    def forward(self, gates: TrainableGates) -> Tensor:
        """See `Penalty`."""
        parts = [lam * gates.expected_cost(budget.kinds) for lam, budget in zip(self.lam, self.budgets, strict=True)]
        return torch.stack(parts).sum()

    @torch.no_grad()
    def adjust(self, gates: TrainableGates, done: float) -> None:
        """See `Penalty`."""
        for index, (budget, heads) in enumerate(zip(self.budgets, self.heads, strict=True)):
            wanted = heads - (heads - budget.keep) * min(1.0, done / self.DESCENT)
            excess = (gates.expected_open(budget.kinds).double() - wanted) / max(heads, 1)
            growth = self.PROPORTIONAL * (excess - self.excess[index]) + self.INTEGRAL * excess * (done - self.done)
            self.lam[index] = (self.lam[index] * growth.exp()).clamp(self.LOWEST, self.HIGHEST)
            self.excess[index] = excess
        self.done.fill_(done)


def gates_and_penalty(
    target: Target, scope: str, shape: ModelShape, settings: GatesSettings, updates: int
) -> tuple[TrainableGates, Penalty]:
    """The gates on the heads of a scope and their penalty, for a target of gates trained for `updates` updates.

    Raises UserError if the scope has fewer heads than the target asks for, or units and gates for exact numbers.
    """
    if target.method == SUBSET:
        if scope in UNIT_SCOPES:
            raise UserError(f"{target} chooses heads alone: in the scope {scope}, give lam-0.01 or keep-512.")
        (budget,) = target.budgets
        return SubsetGates(shape, scope, budget, settings.subset, updates), Penalty(torch.zeros(1))
    if target.lam is not None:
        penalty = Penalty(torch.tensor([target.lam], dtype=torch.float64))
        return HardConcreteGates(shape, scope, settings.hard_concrete), penalty
    gates = HardConcreteGates(shape, scope, settings.hard_concrete, budgets_of(target, scope, shape))
    return gates, DrivenPenalty(gates)

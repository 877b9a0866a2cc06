"""Gates that keep an exact number of heads: differentiable subset pruning (Li, Cotterell and Sachan 2021, sec. 3).

Every head has a logit. The budget's K heads are drawn without replacement: those with the largest logit + Gumbel noise.
The draw is relaxed to K successive softmaxes, each with what was taken before pushed down (Xie and Ermon 2019), at a
temperature that falls geometrically. Once training is over the K largest logits stay.

The authors train with the relaxed gates and, as a variant, with the K largest logits and the identity for a gradient.
Straight-through gates here join both: the drawn heads are exactly open, and the gradient is that of the relaxation.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heads.files import UserError
from heads.names import SCOPES
from heads.transformer import ModelShape

SMALLEST = torch.finfo(torch.float64).tiny


@dataclass(frozen=True, slots=True)
class SubsetSettings:
    """How the relaxation cools down, and whether gates are zeros and ones while training."""

    temperature_first: float
    temperature_last: float
    cooldown_updates: int
    straight_through: bool


def gumbel(shape: torch.Size, generator: torch.Generator) -> Tensor:
    """Standard Gumbel noise in float64, drawn on the CPU, so on any device alike."""
    uniform = torch.rand(shape, generator=generator, dtype=torch.float64).clamp_min(SMALLEST)
    return -(-uniform.log()).log()


def relaxed_top(scores: Tensor, count: int, temperature: float) -> Tensor:
    """Gates [N] of scores [N] that add up to `count`, and are near the `count` largest at low temperatures.

    (Li et al. 2021, eq. 9; Xie and Ermon 2019, alg. 1.)
    """
    gates = torch.zeros_like(scores)
    for _ in range(count):
        taken = (scores / temperature).softmax(0)
        gates = gates + taken
        scores = scores + (1 - taken).clamp_min(SMALLEST).log()
    return gates


def exact_top(scores: Tensor, count: int) -> Tensor:
    """One at the `count` largest scores [N], zero elsewhere; among equals the first."""
    order = scores.detach().argsort(descending=True, stable=True)
    return torch.zeros_like(scores).index_fill(0, order[:count], 1.0)


class SubsetGates(nn.Module):
    """Gates on all live heads of a scope, of which exactly `budget` stay; to be trained like `HeadGates`."""

    logits: nn.Parameter
    draws: Tensor

    def __init__(self, model: ModelShape, scope: str, budget: int, settings: SubsetSettings) -> None:
        super().__init__()
        self.settings, self.budget = settings, budget
        self.sizes = {kind: [len(live) for live in model.live_heads[kind]] for kind in SCOPES[scope]}
        heads = sum(sum(sizes) for sizes in self.sizes.values())
        if not 1 <= budget <= heads:
            raise UserError(
                f"{budget} heads are to be kept of the {heads} in scope {scope}: give a number from 1 to that."
            )
        self.logits = nn.Parameter(torch.zeros(heads))
        # A buffer, so that it is saved with the weights and a resumed training is as cool as one never stopped.
        self.register_buffer("draws", torch.zeros((), dtype=torch.int64))

    def temperature(self) -> float:
        """The temperature of the next draw, falling from the first to the last one by the same factor every draw."""
        settings = self.settings
        done = min(1.0, int(self.draws) / settings.cooldown_updates)
        return float(settings.temperature_first ** (1 - done) * settings.temperature_last**done)

    def sampled(self, generator: torch.Generator) -> dict[str, list[Tensor]]:
        """Gates for one update, the same for all its sentences; every call cools down."""
        noise = gumbel(self.logits.shape, generator).to(self.logits.device)
        scores = self.logits.double() + noise
        gates = relaxed_top(scores, self.budget, self.temperature())
        if self.settings.straight_through:
            gates = exact_top(scores, self.budget) + (gates - gates.detach())
        self.draws += 1
        return self._by_layer(gates.to(self.logits.dtype))

    def binary(self) -> dict[str, list[Tensor]]:
        """The gates of the finished model: one at the `budget` largest logits, zero elsewhere."""
        return self._by_layer(exact_top(self.logits.detach(), self.budget))

    def penalty(self) -> Tensor:
        """The number of open heads, which is fixed: its gradient is zero."""
        return self.budget + 0 * self.logits.sum()

    def _by_layer(self, gates: Tensor) -> dict[str, list[Tensor]]:
        layers = iter(gates.split([size for sizes in self.sizes.values() for size in sizes]))
        return {kind: [next(layers) for _ in sizes] for kind, sizes in self.sizes.items()}

"""Gates that keep exactly K heads: differentiable subset pruning (Li, Cotterell and Sachan 2021, sec. 3).

Every head has a logit. K heads are drawn without replacement: those with the largest logit + Gumbel noise. The draw is
relaxed to K successive softmaxes, each suppressing what the earlier ones took (Xie and Ermon 2019), at a temperature
that falls geometrically. After training the K largest logits stay.

The authors train with the relaxed gates or, as a variant, with the K largest logits and an identity gradient.
Straight-through gates here combine both: the drawn heads are exactly open, and the gradient is that of the relaxation.
"""

import torch
from torch import Tensor, nn

from heads.base.files import UserError
from heads.config.trainings import SubsetSettings
from heads.model.shape import ModelShape
from heads.pruning.gates import TrainableGates

SMALLEST = torch.finfo(torch.float64).tiny


def gumbel(weights: Tensor, generator: torch.Generator) -> Tensor:
    """Standard Gumbel noise in float64, one number for each weight and on the same device."""
    noise = torch.rand(weights.shape, generator=generator, dtype=torch.float64, device=weights.device)
    return -(-noise.clamp_min(SMALLEST).log()).log()


def relaxed_top(scores: Tensor, count: int, temperature: float) -> Tensor:
    """Relaxed gates [N] that sum to `count` and, at low temperatures, select the `count` largest scores [N].

    (Li et al. 2021, eq. 9; Xie and Ermon 2019, alg. 1.)
    """
    gates = torch.zeros_like(scores)
    for _ in range(count):
        taken = (scores / temperature).softmax(0)
        gates = gates + taken
        scores = scores + (1 - taken).clamp_min(SMALLEST).log()
    return gates


def exact_top(scores: Tensor, count: int) -> Tensor:
    """Gates [N]: 1 at the `count` largest scores [N], the first ones on a tie, and 0 elsewhere."""
    order = scores.detach().argsort(descending=True, stable=True)
    return torch.zeros_like(scores).index_fill(0, order[:count], 1.0)


class SubsetGates(TrainableGates):
    """Gates on all live heads of a scope, of which exactly `budget` stay open."""

    weights: nn.Parameter

    def __init__(self, model: ModelShape, scope: str, budget: int, settings: SubsetSettings, updates: int) -> None:
        """updates: the length of the training; the temperature falls over the settings' share of it."""
        super().__init__(model, scope)
        self.settings, self.budget, self.cooldown = settings, budget, settings.cooldown_share * updates
        self.sizes = {kind: [len(live) for live in model.live_heads[kind]] for kind in self.kinds}
        heads = sum(sum(sizes) for sizes in self.sizes.values())
        if not 1 <= budget <= heads:
            raise UserError(
                f"cannot keep {budget} of the {heads} heads in scope {scope}: keep at least 1 and at most all of them."
            )
        self.weights = nn.Parameter(torch.zeros(heads))
        self.draws = 0

    def get_extra_state(self) -> Tensor:
        """The number of draws, saved with the weights so that a resumed training has the same temperature.

        Not a buffer, because on a GPU each draw would wait to read it.
        """
        return torch.tensor(self.draws)

    def set_extra_state(self, state: Tensor) -> None:
        """Resume after so many draws."""
        self.draws = int(state)

    def temperature(self) -> float:
        """The temperature of the next draw, falling geometrically from the first to the last one."""
        settings = self.settings
        done = min(1.0, self.draws / self.cooldown)
        return float(settings.temperature_first ** (1 - done) * settings.temperature_last**done)

    def sampled(self, generator: torch.Generator) -> dict[str, list[Tensor]]:
        """See `TrainableGates`; every call lowers the temperature."""
        scores = self.weights.double() + gumbel(self.weights, generator)
        gates = relaxed_top(scores, self.budget, self.temperature())
        if self.settings.straight_through:
            gates = exact_top(scores, self.budget) + (gates - gates.detach())
        self.draws += 1
        return self._by_layer(gates.to(self.weights.dtype))

    def binary(self) -> dict[str, list[Tensor]]:
        """Gates of the finished model: 1 at the `budget` largest logits, 0 elsewhere."""
        return self._by_layer(exact_top(self.weights.detach(), self.budget))

    def logits(self) -> dict[str, list[Tensor]]:
        """See `TrainableGates`."""
        return self._by_layer(self.weights)

    def chances(self) -> dict[str, list[Tensor]]:
        """The probability that each head is drawn, by successive softmaxes without noise.

        They sum to the budget. The first softmax is exact, and those for further heads are an approximation.
        """
        return self._by_layer(relaxed_top(self.weights.double(), self.budget, 1.0))

    def between(self) -> dict[str, list[Tensor]]:
        """All zeros, as every gate of the finished model is 0 or 1."""
        return self._by_layer(torch.zeros_like(self.weights))

    def _by_layer(self, gates: Tensor) -> dict[str, list[Tensor]]:
        layers = iter(gates.split([size for sizes in self.sizes.values() for size in sizes]))
        return {kind: [next(layers) for _ in sizes] for kind, sizes in self.sizes.items()}

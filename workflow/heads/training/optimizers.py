"""The optimisers of a training: Adam (Kingma and Ba 2015) and, if requested, Muon for hidden matrices.

Muon (Jordan et al. 2024) moves a matrix by its momentum with all singular values made equal. Scaled so that a step is
as long as Adam's (Liu et al. 2025, sec. 2.2), it uses the same learning rate. torch.optim.Muon does the same, but
always in bf16, which takes twice the time on a processor that is faster in fp32.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heads.config.trainings import TrainingSettings
from heads.model.encoder import Encoder

MOMENTUM = 0.95
NEWTON_SCHULZ = ((8.21929, -23.33747, 16.62658), (4.04346, -3.01143, 0.56952), (3.50661, -2.62742, 0.52581))
"""Coefficients of x, x^3 and x^5 in each step. They bring singular values from 0.003 to 1 as near to one as three steps
can (Amsel et al. 2025, "The Polar Express", theorem 3.3), to between 0.35 and 1.65, with room for a rounding error of
2 % in the first. The five steps of Jordan et al. 2024 reach no lower dev loss in the demo and take two fifths longer.
"""
TIMES = "times"
"""The key of a parameter group for its learning rate as a multiple of the schedule's."""
STACKS = ("encoder", "decoder")
"""The names of a model's stacks of layers."""


class Muon(torch.optim.Optimizer):
    """Muon with Nesterov momentum, no weight decay, and steps as long as Adam's."""

    def __init__(self, matrices: list[nn.Parameter], dtype: torch.dtype) -> None:
        """dtype: of the products that make singular values equal."""
        super().__init__(matrices, {"lr": 0.0, TIMES: 1.0})
        self.dtype = dtype

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]  # no closure: gradients are there
        """Update all matrices that have a gradient."""
        for group in self.param_groups:
            alike: dict[torch.Size, list[nn.Parameter]] = {}
            for matrix in group["params"]:
                if matrix.grad is not None:
                    alike.setdefault(matrix.shape, []).append(matrix)
            for shape, matrices in alike.items():
                # All of one shape at once: small products one by one take twice the time, mostly for starting them.
                gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
                for matrix in matrices:
                    if not self.state[matrix]:
                        self.state[matrix]["momentum"] = torch.zeros_like(matrix)
                momenta = [self.state[matrix]["momentum"] for matrix in matrices]
                torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
                moves = torch.stack(gradients)
                torch._foreach_lerp_([*moves.unbind()], momenta, MOMENTUM)
                turned = orthogonal(moves, self.dtype)
                torch._foreach_add_([*matrices], [*turned.unbind()], alpha=-group["lr"] * 0.2 * max(shape) ** 0.5)


def orthogonal(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """Matrices [K, N, M] with the same singular vectors and singular values near one, by products in `dtype`."""
    wide = matrices.shape[1] <= matrices.shape[2]
    turned = (matrices if wide else matrices.mT).to(dtype)
    # No singular value may be above one, or the iteration would diverge.
    turned = turned / turned.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for first, third, fifth in NEWTON_SCHULZ:
        gram = turned @ turned.mT
        turned = torch.baddbmm(turned, torch.baddbmm(gram, gram, gram, beta=third, alpha=fifth), turned, beta=first)
    return turned if wide else turned.mT


@dataclass(frozen=True, slots=True)
class NewWeights:
    """Parameters added to a trained model, and the factor on their learning rate."""

    parameters: tuple[nn.Parameter, ...] = ()
    rate: float = 1.0


NO_NEW_WEIGHTS = NewWeights()


class Optimizers:
    """The optimisers of a training, used as one; the model's parameters follow the learning rate schedule."""

    def __init__(
        self,
        model: Encoder,
        settings: TrainingSettings,
        gates: Iterable[nn.Parameter],
        gate_rate: float,
        dtype: torch.dtype = torch.float32,
        new: NewWeights = NO_NEW_WEIGHTS,
    ) -> None:
        """dtype: of the products in which an optimiser need not be exact."""
        learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        fresh = {id(parameter) for parameter in new.parameters}
        hidden = (
            [each for each in hidden_matrices(model) if id(each) not in fresh] if settings.optimizer == "muon" else []
        )
        others = fresh | {id(parameter) for parameter in hidden}
        groups: list[dict[str, Any]] = [{"params": [each for each in learning if id(each) not in others], TIMES: 1.0}]
        if new.parameters:
            groups.append({"params": list(new.parameters), TIMES: new.rate})
        if gates := list(gates):
            groups.append({"params": gates, "lr": gate_rate})
        adam = torch.optim.Adam(
            groups, lr=0.0, betas=(settings.adam_beta1, settings.adam_beta2), eps=settings.adam_epsilon, fused=True
        )
        self.each: list[torch.optim.Optimizer] = [adam]
        if hidden:
            self.each.append(Muon(hidden, dtype))
        named = [*model.named_parameters(), *((f"gates.{number}", gate) for number, gate in enumerate(gates))]
        self.names = {id(parameter): name for name, parameter in named}

    def parameters(self) -> Iterator[Tensor]:
        """All parameters that are trained."""
        for optimizer in self.each:
            for group in optimizer.param_groups:
                yield from group["params"]

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for optimizer in self.each:
            optimizer.zero_grad(set_to_none=True)

    def step(self, rate: float) -> None:
        """One step of all optimisers, with this learning rate or its multiple for the model's parameters."""
        for optimizer in self.each:
            for group in optimizer.param_groups:
                if TIMES in group:
                    group["lr"] = rate * group[TIMES]
            optimizer.step()

    def state(self) -> dict[str, Tensor]:
        """All moments by parameter name, as a later version of the code may order parameters differently."""
        return {
            f"{self.names[id(parameter)]}.{name}": value
            for optimizer in self.each
            for parameter, values in optimizer.state.items()
            for name, value in values.items()
        }

    def fits(self, state: Mapping[str, Tensor]) -> bool:
        """Whether a `state` is of these parameters; those that have had no gradient yet have no moments."""
        return {key.rpartition(".")[0] for key in state} <= {self.names[id(each)] for each in self.parameters()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned."""
        moments: dict[str, dict[str, Tensor]] = {}
        for key, value in state.items():
            parameter, _, name = key.rpartition(".")
            moments.setdefault(parameter, {})[name] = value
        for optimizer in self.each:
            learning = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            names = enumerate(self.names[id(parameter)] for parameter in learning)
            own = {number: moments[name] for number, name in names if name in moments}
            optimizer.load_state_dict({"state": own, "param_groups": optimizer.state_dict()["param_groups"]})


def hidden_matrices(model: Encoder) -> list[nn.Parameter]:
    """The trained matrices of all layers; no vectors, embeddings or projection, whose rows are subwords."""
    stacks = [stack for name, stack in model.named_children() if name in STACKS]
    layers = [parameter for stack in stacks for parameter in stack.parameters()]
    return [matrix for matrix in layers if matrix.requires_grad and matrix.dim() == 2 and matrix.numel()]

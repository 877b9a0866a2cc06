"""Stochastic gates on heads: the hard-concrete distribution and its penalty.

Louizos et al. 2018; Voita et al. 2019, sec. 6.1.

s = sigmoid((log u - log(1 - u) + log_alpha) / temperature) for uniform u is stretched to (low, high) and clipped to
[0, 1], which leaves real mass on exactly 0 and exactly 1. The penalty is the sum over heads of P(gate > 0).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from heads.names import SCOPES
from heads.settings import HardConcrete
from heads.transformer import ModelShape

UNIFORM_EDGE = 1e-6
"""How far from 0 and 1 the uniform noise stays, so that its logarithms are finite (as in the authors' code)."""


def sample(log_alpha: Tensor, noise: Tensor, shape: HardConcrete) -> Tensor:
    """Gates in [0, 1], the shape of `log_alpha`, for uniform `noise` in [0, 1)."""
    noise = noise.clamp(UNIFORM_EDGE, 1 - UNIFORM_EDGE)
    concrete = torch.sigmoid((noise.log() - (1 - noise).log() + log_alpha) / shape.temperature)
    return (concrete * (shape.high - shape.low) + shape.low).clamp(0, 1)


def probability_open(log_alpha: Tensor, shape: HardConcrete) -> Tensor:
    """P(gate > 0), the penalty's summand (Louizos et al. 2018, eq. 12)."""
    return torch.sigmoid(log_alpha - shape.temperature * math.log(-shape.low / shape.high))


def probability_one(log_alpha: Tensor, shape: HardConcrete) -> Tensor:
    """P(gate = 1)."""
    return torch.sigmoid(log_alpha - shape.temperature * math.log((1 - shape.low) / (shape.high - 1)))


def is_open(log_alpha: Tensor, shape: HardConcrete) -> Tensor:
    """Whether a gate is 1 once training is over: P(gate = 1) against P(gate = 0), as the paper says."""
    return probability_one(log_alpha, shape) > 1 - probability_open(log_alpha, shape)


def strictly_between(log_alpha: Tensor, shape: HardConcrete) -> Tensor:
    """Whether the authors' code would have used a gate that is neither 0 nor 1 at test time."""
    gate = torch.sigmoid(log_alpha) * (shape.high - shape.low) + shape.low
    return (gate > 0) & (gate < 1)


class HeadGates(nn.Module):
    """One trainable gate for every live head of a scope."""

    def __init__(self, model: ModelShape, scope: str, shape: HardConcrete) -> None:
        super().__init__()
        self.shape = shape
        self.log_alpha = nn.ParameterDict()
        for kind in SCOPES[scope]:
            for layer, live in enumerate(model.live_heads[kind]):
                self.log_alpha[f"{kind}:{layer}"] = nn.Parameter(torch.full((len(live),), shape.log_alpha_init))

    def sampled(self, generator: torch.Generator) -> dict[str, list[Tensor]]:
        """Gates for one batch, the same for all its members; the noise is drawn on the CPU, so on any device alike."""
        gates: dict[str, list[Tensor]] = {}
        for name, log_alpha in self.log_alpha.items():
            noise = torch.rand(log_alpha.shape, generator=generator).to(log_alpha.device)
            gates.setdefault(name.split(":")[0], []).append(sample(log_alpha, noise, self.shape))
        return gates

    def binary(self) -> dict[str, list[Tensor]]:
        """The gates of the finished model: zeros and ones."""
        gates: dict[str, list[Tensor]] = {}
        for name, log_alpha in self.log_alpha.items():
            gates.setdefault(name.split(":")[0], []).append(is_open(log_alpha, self.shape).to(log_alpha.dtype))
        return gates

    def penalty(self) -> Tensor:
        """Expected number of open heads, sum over heads of P(gate > 0)."""
        return torch.stack([probability_open(a, self.shape).sum() for a in self.log_alpha.values()]).sum()

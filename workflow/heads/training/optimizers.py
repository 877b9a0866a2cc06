"""What takes the steps of a training: Adam (Kingma and Ba 2015), and Muon for hidden matrices where it is asked for.

Muon (Jordan et al. 2024, torch.optim.Muon) moves a matrix by its momentum with all singular values made alike. Scaled
so that a step is as long as Adam's (Liu et al. 2025, sec. 2.2), it goes by the same learning rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from heads.config.trainings import TrainingSettings
from heads.model.transformer import Transformer


class Optimizers:
    """The optimisers of a training, as one; the rate of the model's parameters follows the schedule."""

    def __init__(
        self, model: Transformer, settings: TrainingSettings, gates: Iterable[nn.Parameter], gate_rate: float
    ) -> None:
        learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        hidden = hidden_matrices(model) if settings.optimizer == "muon" else []
        ours = {id(parameter) for parameter in hidden}
        groups: list[dict[str, Any]] = [{"params": [parameter for parameter in learning if id(parameter) not in ours]}]
        if gates := list(gates):
            groups.append({"params": gates, "lr": gate_rate})
        adam = torch.optim.Adam(
            groups,
            lr=0.0,
            betas=(settings.adam_beta1, settings.adam_beta2),
            eps=settings.adam_epsilon,
            fused=True,
        )
        self.each: list[torch.optim.Optimizer] = [adam]
        if hidden:
            self.each.append(torch.optim.Muon(hidden, lr=0.0, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"))

    def parameters(self) -> Iterator[Tensor]:
        """All that learns."""
        for optimizer in self.each:
            for group in optimizer.param_groups:
                yield from group["params"]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for optimizer in self.each:
            optimizer.zero_grad(set_to_none=True)

    def step(self, rate: float) -> None:
        """One step of all, of the model's parameters at this rate."""
        for optimizer in self.each:
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()

    def state(self) -> dict[str, Tensor]:
        """All moments, by the number of their optimiser and parameter."""
        return {
            f"{number}.{index}.{name}": value
            for number, optimizer in enumerate(self.each)
            for index, values in optimizer.state_dict()["state"].items()
            for name, value in values.items()
        }

    def load(self, state: dict[str, Tensor]) -> None:
        """Go back to what `state` gave."""
        for number, optimizer in enumerate(self.each):
            moments: dict[int, dict[str, Tensor]] = {}
            for key, value in state.items():
                which, index, name = key.split(".")
                if int(which) == number:
                    moments.setdefault(int(index), {})[name] = value
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": moments, "param_groups": groups})


def hidden_matrices(model: Transformer) -> list[nn.Parameter]:
    """The learning matrices of all layers; not embeddings and the projection, whose rows are pieces, nor vectors."""
    layers = [*model.encoder.parameters(), *model.decoder.parameters()]
    return [matrix for matrix in layers if matrix.requires_grad and matrix.dim() == 2 and matrix.numel()]

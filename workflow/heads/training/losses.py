"""The losses of a training's updates, left on their device until they are read, and that of sentence vectors."""

import math
from copy import deepcopy

import torch
from torch import Tensor, nn

from heads.model.encoder import Encoder
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.text.batches import Batch
from heads.text.packed import Packed


class Losses:
    """Losses of the updates since they were last taken; reading them means waiting for the GPU."""

    def __init__(self) -> None:
        self.known: list[float] = []
        self.unread: list[tuple[int, Tensor]] = []

    def add(self, update: int, loss: Tensor) -> None:
        """Add the loss [] of an update, without waiting for it."""
        self.unread.append((update, loss))

    def read(self) -> list[float]:
        """All losses, with one wait; raises FloatingPointError naming the first update whose loss is not finite."""
        if self.unread:
            updates, losses = zip(*self.unread, strict=True)
            found = torch.stack(losses).tolist()
            for update, loss in zip(updates, found, strict=True):
                if not math.isfinite(loss):
                    raise FloatingPointError(f"the loss is {loss} at update {update}")
            self.known += found
            self.unread.clear()
        return self.known

    def take(self) -> list[float]:
        """All losses, as from `read`, after which the list is empty."""
        losses, self.known = self.read(), []
        return losses


def beginning(model: Encoder, device: torch.device) -> Encoder | None:
    """A frozen copy of a model that embeds sentences; None for any other model."""
    if not model.shape.embeds:
        return None
    return deepcopy(model).to(device).eval().requires_grad_(requires_grad=False)


def drift(model: nn.Module, first: Encoder, batch: Batch, gates: Gates | None) -> Tensor:
    """One minus the cosine [B] of both models' vectors of a batch's sentences; gates are those of `model`."""
    given = (batch.source, batch.source_mask, None)
    with torch.no_grad():
        wanted = first(*given)
    found: Tensor = model(*given, gates)
    cosines: Tensor = (found * wanted).sum(-1)[:, 0]
    return 1 - cosines


def states_and_answers(model: Encoder, batch: Batch | Packed, gates: Gates | None) -> tuple[Tensor, Tensor]:
    """A model's states [N, D] at the places of all answers of a batch, and the answers [N]: subwords or labels."""
    if isinstance(batch, Batch):  # examples, with one answer each
        states = model(batch.source, batch.source_mask, batch.target_input, gates)
        return states.flatten(0, 1), batch.target_output.flatten()
    assert isinstance(model, Transformer)
    states = model.packed(batch, gates)
    return states[: batch.real], batch.target_output[: batch.real]

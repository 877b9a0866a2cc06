"""The losses of a training's updates, left on their device until they are read, and how far a teacher is."""

import math
from copy import deepcopy

import torch
from torch import Tensor, nn

from heads.model.encoder import Encoder
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.text.batches import Batch
from heads.text.packed import Packed
from heads.training.divergence import divergence


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


def teacher_of(model: Encoder, teacher: Encoder | None, device: torch.device) -> Encoder | None:
    """A frozen copy of the teacher; a model that embeds sentences has itself as one, if there is no other."""
    if teacher is None and not model.shape.embeds:
        return None
    return deepcopy(teacher or model).to(device).eval().requires_grad_(requires_grad=False)


def distance(model: Encoder, teacher: Encoder, batch: Batch | Packed, gates: Gates | None) -> Tensor:
    """How far a model is from its teacher [], summed over the answers of a batch; gates are those of the model.

    For a model that embeds sentences it is the `drift`, for any other the divergence in nats of the probabilities of
    all subwords, or labels, at the place of each answer.
    """
    if model.shape.embeds:
        assert isinstance(batch, Batch)
        return drift(model, teacher, batch, gates).sum()
    with torch.no_grad():
        wanted, _ = states_and_answers(teacher, batch, None)
    return divergence(states_and_answers(model, batch, gates)[0], model.projection, wanted, teacher.projection)


def drift(model: nn.Module, teacher: Encoder, batch: Batch, gates: Gates | None) -> Tensor:
    """One minus the cosine [B] of both models' vectors of a batch's sentences; gates are those of `model`."""
    given = (batch.source, batch.source_mask, None)
    with torch.no_grad():
        wanted = teacher(*given)
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

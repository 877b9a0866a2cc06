"""The losses of the updates of a training, left where they are until somebody asks."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Losses:
    """Losses of the updates since they were last taken; to read one is to wait for the GPU that works on it."""

    def __init__(self) -> None:
        self.known: list[float] = []
        self.unread: list[tuple[int, Tensor]] = []

    def add(self, update: int, loss: Tensor) -> None:
        """Take in the loss [] of an update, without waiting for it."""
        self.unread.append((update, loss))

    def read(self) -> list[float]:
        """All of them, by one wait; raises FloatingPointError that names the first update whose loss is no number."""
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
        """The same, and begin anew."""
        losses, self.known = self.read(), []
        return losses

"""The losses of a training's updates, left on their device until they are read."""

from __future__ import annotations

import math

import torch
from torch import Tensor


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

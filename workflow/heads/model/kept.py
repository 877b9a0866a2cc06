"""What sub-layers keep of their sentences while these are decoded token by token.

B sentences, N hypotheses of each, R tokens for which there is room, S source length, D width, H heads, E their width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from heads.model.attention import KeyValues

ROOM = 8
"""For how many more steps there is room when keys and values are copied, which also leaves out what nobody needs."""


class Kept(Protocol):
    """What one sub-layer keeps."""

    @property
    def of_source(self) -> bool:
        """Whether it is the same in every step, made of the encoder's states alone."""

    def tensors(self) -> dict[str, Tensor]:
        """What it is made of, by name; nothing of an attention without heads."""

    def filled(self, tensors: Sequence[Tensor]) -> Kept:
        """The same with other tensors, in the order of `tensors`."""

    def reorder(self, parents: Tensor) -> None:
        """Put at each place [B, N] of a sentence a hypothesis that goes on from the one at place `parents`."""

    def keep(self, rows: Tensor) -> None:
        """Go on with these sentences only, in that order."""

    def tidy(self, rows: Tensor, places: Tensor) -> None:
        """Of sentences `rows` keep the past at `places` [b, R] alone; only of what holds a place for each token."""


class Nothing:
    """Nothing, and what the others have in common."""

    of_source = False

    def tensors(self) -> dict[str, Tensor]:
        """See `Kept`."""
        return {}

    def filled(self, tensors: Sequence[Tensor]) -> Kept:
        """See `Kept`."""
        return self

    def reorder(self, parents: Tensor) -> None:
        """See `Kept`."""

    def keep(self, rows: Tensor) -> None:
        """See `Kept`."""

    def tidy(self, rows: Tensor, places: Tensor) -> None:
        """See `Kept`."""


@dataclass
class OwnPast(Nothing):
    """Keys and values of all that a self-attention has seen [B, H, R, E].

    They stay where a step wrote them: all hypotheses of a sentence attend to the same ones, and each sees those of its
    own past. So a hypothesis changes its place without them, and a past that several share stands there once.
    """

    written: KeyValues

    @classmethod
    def empty(cls, like: Tensor, heads: int, head_width: int, hypotheses: int) -> OwnPast:
        """Room for the first steps of as many sentences as `like` has rows."""
        room = like.new_empty(like.shape[0], heads, ROOM * hypotheses, head_width)
        return cls(KeyValues(room, room.clone()))

    def extended(self, newest: KeyValues, end: int) -> KeyValues:
        """Keys and values of all steps with the newest [B, H, N, E], which end at `end`; 0: behind all there are."""
        if not end:
            self.written = self.written.joined(newest)
            return self.written
        self.written.write(newest, end)
        return self.written.first(end)

    def tensors(self) -> dict[str, Tensor]:
        """See `Kept`."""
        return self.written.tensors()

    def filled(self, tensors: Sequence[Tensor]) -> Kept:
        """See `Kept`."""
        return OwnPast(KeyValues(*tensors)) if tensors else self

    def tidy(self, rows: Tensor, places: Tensor) -> None:
        """See `Kept`."""
        self.written = self.written.taken(rows, places)


@dataclass
class OfMemory(Nothing):
    """Keys and values [B, H, S, E] of the encoder's states."""

    attended: KeyValues
    of_source = True

    def tensors(self) -> dict[str, Tensor]:
        """See `Kept`."""
        return self.attended.tensors()

    def filled(self, tensors: Sequence[Tensor]) -> Kept:
        """See `Kept`."""
        return OfMemory(KeyValues(*tensors)) if tensors else self

    def keep(self, rows: Tensor) -> None:
        """See `Kept`."""
        self.attended = self.attended.rows(rows)


@dataclass
class Recurrent(Nothing):
    """The state [B, N, D] of a recurrent unit."""

    state: Tensor

    def tensors(self) -> dict[str, Tensor]:
        """See `Kept`."""
        return {"state": self.state}

    def filled(self, tensors: Sequence[Tensor]) -> Kept:
        """See `Kept`."""
        return Recurrent(*tensors)

    def reorder(self, parents: Tensor) -> None:
        """See `Kept`."""
        self.state = self.state.gather(1, parents[:, :, None].expand_as(self.state))

    def keep(self, rows: Tensor) -> None:
        """See `Kept`."""
        self.state = self.state[rows]

"""What sub-layers cache of their sentences while these are decoded token by token.

B sentences, N hypotheses of each, R tokens that there is room for, S source length, D width, H heads, E head width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from heads.model.attention import KeyValues

ROOM = 8
"""Number of further steps to make room for when keys and values are copied, which also drops unused ones."""


class SublayerCache:
    """What one sub-layer caches: nothing, unless a subclass says so."""

    of_source = False
    """Whether it depends on the encoder's states alone, and so is the same in every step."""

    def tensors(self) -> dict[str, Tensor]:
        """Its tensors by name; none for an attention without heads."""
        return {}

    def filled(self, tensors: Sequence[Tensor]) -> SublayerCache:
        """The same cache with other tensors, given in the order of `tensors`."""
        return self

    def reorder(self, parents: Tensor) -> None:
        """Let the hypothesis at each place [B, N] of a sentence continue the one at place `parents`."""

    def keep(self, rows: Tensor) -> None:
        """Keep only these sentences, in that order."""

    def tidy(self, rows: Tensor, places: Tensor) -> None:
        """Keep only `places` [b, R] of the past of sentences `rows`, in caches that have a place for each token."""


@dataclass
class SelfAttentionCache(SublayerCache):
    """Keys and values [B, H, R, E] of all tokens that a self-attention has seen.

    They stay where a step wrote them: all hypotheses of a sentence attend to the same ones, and each sees those of its
    own past. So reordering hypotheses moves none of them, and a past that several hypotheses share is stored once.
    """

    written: KeyValues

    @classmethod
    def empty(cls, like: Tensor, heads: int, head_width: int, hypotheses: int) -> SelfAttentionCache:
        """An empty cache with room for the first steps of as many sentences as `like` has rows."""
        room = like.new_empty(like.shape[0], heads, ROOM * hypotheses, head_width)
        return cls(KeyValues(room, room.clone()))

    def extended(self, newest: KeyValues, end: int) -> KeyValues:
        """Keys and values of all steps including the newest [B, H, N, E], written up to `end`; 0: append them."""
        if not end:
            self.written = self.written.joined(newest)
            return self.written
        self.written.write(newest, end)
        return self.written.first(end)

    def tensors(self) -> dict[str, Tensor]:
        """See `SublayerCache`."""
        return self.written.tensors()

    def filled(self, tensors: Sequence[Tensor]) -> SublayerCache:
        """See `SublayerCache`."""
        return SelfAttentionCache(KeyValues(*tensors)) if tensors else self

    def tidy(self, rows: Tensor, places: Tensor) -> None:
        """See `SublayerCache`."""
        self.written = self.written.taken(rows, places)


@dataclass
class CrossAttentionCache(SublayerCache):
    """Keys and values [B, H, S, E] of the encoder's states."""

    attended: KeyValues
    of_source = True

    def tensors(self) -> dict[str, Tensor]:
        """See `SublayerCache`."""
        return self.attended.tensors()

    def filled(self, tensors: Sequence[Tensor]) -> SublayerCache:
        """See `SublayerCache`."""
        return CrossAttentionCache(KeyValues(*tensors)) if tensors else self

    def keep(self, rows: Tensor) -> None:
        """See `SublayerCache`."""
        self.attended = self.attended.rows(rows)


@dataclass
class Recurrent(SublayerCache):
    """The state [B, N, D] of a recurrent unit."""

    state: Tensor

    def tensors(self) -> dict[str, Tensor]:
        """See `SublayerCache`."""
        return {"state": self.state}

    def filled(self, tensors: Sequence[Tensor]) -> SublayerCache:
        """See `SublayerCache`."""
        return Recurrent(*tensors)

    def reorder(self, parents: Tensor) -> None:
        """See `SublayerCache`."""
        self.state = self.state.gather(1, parents[:, :, None].expand_as(self.state))

    def keep(self, rows: Tensor) -> None:
        """See `SublayerCache`."""
        self.state = self.state[rows]

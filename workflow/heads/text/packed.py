"""Batches without padding, in which sentences follow one another, and how attention keeps them apart.

N source or target subwords, including the EOS of each sentence, of B sentences; L length of the longest; H heads of
width E; P linear maps of the same states, such as keys and values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heads.text.special_ids import BOS, EOS, PAD


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a CPU tensor to a device. A GPU reads it when it gets there, and nothing waits for that."""
    # From memory that is not pinned, a copy begins only when the GPU has done all its earlier work.
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=True)


class Spans:
    """Which of N subwords belong to which sentence.

    Attention that needs sentences as rows of equal length gets them by `padded_heads`, and `packed_heads` undoes it.
    """

    def __init__(self, starts: Tensor, sentences: Tensor, places: Tensor, grid: Tensor, *, mask: Tensor | None) -> None:
        """starts: int32 [B + 1], where sentences begin and the last one ends. sentences, places: the sentence [N] of
        each subword, and its position there. grid: [B, L], the number of the subword at each position, 0 after the end
        of a sentence. mask: [B, L], True at real positions; None if all are.
        """
        self.starts, self.sentences, self.places, self.grid, self.mask = starts, sentences, places, grid, mask
        self._indices: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}

    @classmethod
    def of_lengths(cls, lengths: NDArray[np.int64]) -> Spans:
        """The spans of sentences with these lengths, on the CPU."""
        starts = np.concatenate([[0], np.cumsum(lengths)])
        longest = int(lengths.max())
        within = np.arange(longest) < lengths[:, None]
        grid = np.where(within, starts[:-1, None] + np.arange(longest), 0)
        mask = None if within.all() else torch.from_numpy(within)
        return cls(*map(torch.from_numpy, (starts.astype(np.int32), *within.nonzero(), grid)), mask=mask)

    @property
    def longest(self) -> int:
        """Length of the longest sentence."""
        return self.grid.shape[1]

    def to(self, device: torch.device) -> Spans:
        """The same spans on a device."""
        mask = None if self.mask is None else moved(self.mask, device)
        return Spans(*(moved(one, device) for one in (self.starts, self.sentences, self.places, self.grid)), mask=mask)

    def indices(self, maps: int, heads: int) -> tuple[Tensor, Tensor]:
        """Where the rows [P * B * H * L] of laid-out heads are among [N * P * H], and the way back [N * P * H]."""
        if (maps, heads) not in self._indices:
            count, longest = self.grid.shape
            one, head = (torch.arange(number, device=self.grid.device) for number in (maps, heads))
            there = (self.grid[:, None] * maps + one[:, None, None, None]) * heads + head[:, None]
            first = (one[:, None] * count + self.sentences[:, None, None]) * heads + head
            back = first * longest + self.places[:, None, None]
            there, back = there.flatten(), back.flatten()
            self._indices[maps, heads] = there, back
        return self._indices[maps, heads]

    def padded_heads(self, states: Tensor, maps: int, heads: int) -> list[Tensor]:
        """States [N, P * H * E] of all subwords as heads [B, H, L, E] of each of the P maps."""
        there, back = self.indices(maps, heads)
        rows = states.view(len(states) * maps * heads, -1)
        laid: Tensor = _Moved.apply(rows, there, back, None)
        return list(laid.view(maps, *self.grid.shape[:1], heads, self.longest, -1).unbind())

    def packed_heads(self, per_head: Tensor) -> Tensor:
        """Heads [B, H, L, E] as states [N, H * E] of all subwords."""
        heads = per_head.shape[1]
        there, back = self.indices(1, heads)
        real = None if self.mask is None else self.mask[:, None].expand(-1, heads, -1).reshape(-1, 1)
        rows: Tensor = _Moved.apply(per_head.reshape(-1, per_head.shape[-1]), back, there, real)
        return rows.view(len(self.places), -1)


class _Moved(torch.autograd.Function):
    """Rows at an index. The gradient is moved back by another one, as adding at an index takes five times as long."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, there: Tensor, back: Tensor, real: Tensor | None) -> Tensor:
        """Rows [R, E] at `there`. back: where each of them has gone. real: [R, 1], False at those that went nowhere."""
        ctx.save_for_backward(back, real)
        return rows.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient of each row."""
        back, real = ctx.saved_tensors
        returned = grad.index_select(0, back)
        return returned if real is None else returned.mul_(real), None, None, None


@dataclass(frozen=True, slots=True)
class Packed:
    """Subword ids of a batch without padding."""

    source: Tensor
    """[N], each sentence followed by EOS."""
    source_spans: Spans
    target_input: Tensor
    """[N], BOS before each sentence."""
    target_output: Tensor
    """[N], EOS after each sentence; what each position of `target_input` should predict."""
    target_spans: Spans
    real: int
    """Number of target subwords before those that only fill the batch up."""

    def to(self, device: torch.device) -> Packed:
        """The same batch on a device."""
        source, given, wanted = (moved(one, device) for one in (self.source, self.target_input, self.target_output))
        return Packed(source, self.source_spans.to(device), given, wanted, self.target_spans.to(device), real=self.real)


def pack(sources: Sequence[NDArray[np.int32]], targets: Sequence[NDArray[np.int32]], *, multiple: int = 1) -> Packed:
    """A batch from subword ids without BOS and EOS.

    With a `multiple`, a last sentence of padding makes the number of subwords on each side one of its multiples.
    """
    ends, starts = np.array([EOS], np.int32), np.array([BOS], np.int32)
    source, source_lengths = _joined([part for one in sources for part in (one, ends)], sources, multiple)
    output, lengths = _joined([part for one in targets for part in (one, ends)], targets, multiple)
    given, _ = _joined([part for one in targets for part in (starts, one)], targets, multiple)
    return Packed(
        torch.from_numpy(source),
        Spans.of_lengths(source_lengths),
        torch.from_numpy(given),
        torch.from_numpy(output),
        Spans.of_lengths(lengths),
        real=int(lengths[: len(targets)].sum()),
    )


def _joined(
    parts: Sequence[NDArray[np.int32]], sentences: Sequence[NDArray[np.int32]], multiple: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Parts one after another with what fills them up, and the lengths of sentences with EOS and of that."""
    lengths = [1 + len(one) for one in sentences]
    # At least one, as attention from the last sentence of one side needs something to see in that of the other.
    filling = [] if multiple == 1 else [multiple - sum(lengths) % multiple]
    ids = np.concatenate([*parts, np.full(sum(filling), PAD, np.int32)]).astype(np.int64)
    return ids, np.array([*lengths, *filling], np.int64)

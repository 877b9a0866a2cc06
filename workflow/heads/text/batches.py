"""Padded batches of sentences: bucketed by length, split by source tokens, the same for the same seed.

B batch, S source length, T target length, both including EOS.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heads.base.files import UserError
from heads.base.names import SIDES
from heads.text.packed import Packed, moved, pack
from heads.text.special_ids import BOS, EOS, PAD
from heads.text.vocabulary import Tokens

MAX_SUBWORDS = 1000
"""Longer pairs are left out if no setting limits them, so that one faulty line cannot fill the memory."""
MOST_PADDED = 2
"""A batch for evaluation has at most this many times the tokens asked for, with its padding, or else one sentence."""
POOL_UPDATES = 64
"""Number of updates whose sentences are sorted by length together: more save padding, fewer shuffle better."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded id tensors with masks that are True at real tokens."""

    source: Tensor
    """[B, S], each sentence followed by EOS."""
    source_mask: Tensor
    target_input: Tensor
    """[B, T], BOS before each sentence."""
    target_output: Tensor
    """[B, T], EOS after each sentence; what each position of `target_input` should predict."""
    target_mask: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device."""
        return Batch(*(moved(getattr(self, name), device) for name in Batch.__slots__))


@dataclass(frozen=True, slots=True)
class TimedBatch:
    """Source ids [B, S], their mask, and the number of subwords to write per translation."""

    source: Tensor
    mask: Tensor
    subwords: int


def pad(sequences: Sequence[NDArray[np.int32]]) -> tuple[Tensor, Tensor]:
    """Sequences of ids as a tensor [B, longest], padded at the end, and its mask."""
    lengths = np.array([*map(len, sequences)], np.int64)
    mask = _mask(lengths, int(lengths.max()))
    return torch.from_numpy(_padded(sequences, mask)), torch.from_numpy(mask)


def make_batch(sources: Sequence[NDArray[np.int32]], targets: Sequence[NDArray[np.int32]]) -> Batch:
    """A padded batch from subword ids without BOS and EOS."""
    source, source_mask, _ = _framed(sources)
    output, target_mask, started = _framed(targets)
    return Batch(*map(torch.from_numpy, (source, source_mask, started, output, target_mask)))


def _framed(sequences: Sequence[NDArray[np.int32]]) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Sequences [B, length] followed by EOS, their mask, and the same after BOS."""
    lengths = np.array([*map(len, sequences)], np.int64)
    width = int(lengths.max()) + 1
    ended = _padded(sequences, _mask(lengths, width))
    started = np.roll(ended, 1, 1)
    started[:, 0], ended[np.arange(len(ended)), lengths] = BOS, EOS
    return ended, _mask(lengths + 1, width), started


def _mask(lengths: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
    """Mask [B, width] that is True at the first `lengths` of each row."""
    return np.arange(width) < lengths[:, None]


def _padded(sequences: Sequence[NDArray[np.int32]], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Sequences as rows where the mask is True; all at once, as a loop over rows takes fifteen times as long."""
    padded = np.full(mask.shape, PAD, np.int64)
    padded[mask] = np.concatenate(sequences)
    return padded


class Pairs:
    """The encoded pairs of a split, without those with more than `max_subwords` subwords on either side."""

    def __init__(self, source: Tokens, target: Tokens, max_subwords: int) -> None:
        self.source, self.target = source, target
        kept = (source.lengths <= max_subwords) & (target.lengths <= max_subwords)
        self.index = np.flatnonzero(kept)
        self.left_out = len(kept) - len(self.index)

    def only(self, members: Sequence[int] | NDArray[np.int64]) -> Self:
        """Only the pairs with these numbers, in that order."""
        part = copy(self)
        part.index = np.array(members, np.int64)
        return part

    def first(self, subwords: int) -> Self:
        """The first pairs, until they have so many source subwords together."""
        return self.only(self.index[: 1 + np.searchsorted(np.cumsum(self.source.lengths[self.index]), subwords)])

    def drawn(self, subwords: int) -> Self:
        """Pairs drawn at random, always the same, with about so many source subwords together."""
        return self.only(np.random.default_rng(1).permutation(self.index)).first(subwords)

    def answers(self, members: NDArray[np.int64]) -> int:
        """Number of subwords that a model has to predict for these pairs, including EOS."""
        return int(self.target.lengths[members].sum()) + len(members)

    def batch(self, members: NDArray[np.int64]) -> Batch:
        """The padded batch of the pairs with these numbers."""
        return make_batch([self.source[i] for i in members], [self.target[i] for i in members])

    def unpadded(self, members: NDArray[np.int64], multiple: int = 1) -> Batch | Packed:
        """The batch of the pairs with these numbers without padding, its subwords rounded up to `multiple`."""
        return pack([self.source[i] for i in members], [self.target[i] for i in members], multiple=multiple)

    def in_order(self, batch_tokens: int, limit: int | None = None) -> Iterator[tuple[NDArray[np.int64], Batch]]:
        """Batches of pairs of similar length for evaluation, from the first `limit` pairs, with the pairs' numbers."""
        for members in self.by_length(batch_tokens, limit):
            yield members, self.batch(members)

    def by_length(self, batch_tokens: int, limit: int | None = None) -> Iterator[NDArray[np.int64]]:
        """The numbers of pairs of similar length that make a batch together, from the first `limit` pairs."""
        index = self.index[:limit]
        lengths = self.source.lengths
        ordered = index[np.argsort(lengths[index], kind="stable")]
        yield from batched(ordered, lengths, batch_tokens, np.maximum(lengths, self.target.lengths))

    def epoch(self, batch_tokens: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """The updates of one epoch, each as numbers of pairs with about `batch_tokens` source tokens together."""
        generator = np.random.default_rng([seed, epoch])
        order = generator.permutation(self.index)
        lengths = self.source.lengths
        pools = cut(order, lengths, batch_tokens * POOL_UPDATES)
        updates = []
        for pool in pools:
            # By the longer side: by source, then target, a third of the target tokens of real text were padding.
            both = np.stack([lengths[pool], self.target.lengths[pool]])
            by_length = pool[np.lexsort((both.min(0), both.max(0)))]
            updates += cut(by_length, lengths, batch_tokens)
        generator.shuffle(updates)
        return updates


class Examples(Pairs):
    """The encoded examples of a split, already framed by start and separators, and their labels."""

    def answers(self, members: NDArray[np.int64]) -> int:
        """Number of labels that a model has to predict for these examples."""
        return len(members)

    def unpadded(self, members: NDArray[np.int64], multiple: int = 1) -> Batch:  # noqa: ARG002
        """The same padded batch as `batch` gives, as one state of each example becomes its answer."""
        return self.batch(members)

    def batch(self, members: NDArray[np.int64]) -> Batch:
        """As for pairs: the only answer of each example [B, 1] is its label, with nothing but BOS before it."""
        examples = [self.source[i] for i in members]
        lengths = np.array([*map(len, examples)], np.int64)
        mask = _mask(lengths, int(lengths.max()))
        labels = np.concatenate([self.target[i] for i in members]).astype(np.int64)[:, None]
        arrays = (_padded(examples, mask), mask, np.full_like(labels, BOS), labels, np.ones_like(labels, np.bool_))
        return Batch(*map(torch.from_numpy, arrays))


def pairs_of(source: Tokens, target: Tokens, max_subwords: int, *, labelled: bool) -> Pairs:
    """Encoded pairs for translation or, if `labelled`, examples with labels.

    Raises UserError unless both sides have as many sentences, and examples one label each.
    """
    if len(source) != len(target):
        raise UserError(f"The source has {len(source)} sentences and the target {len(target)}: give files of one text.")
    if labelled and (target.lengths != 1).any():
        raise UserError(
            "The target has lines without exactly one label, but a model without a decoder gives one for each example: "
            "give the labels of examples, or a model that translates."
        )
    return (Examples if labelled else Pairs)(source, target, max_subwords)


def training_pairs(source: Tokens, target: Tokens, max_subwords: int, name: str, *, labelled: bool) -> Pairs:
    """The pairs of `pairs_of`, in a training. name: of the text. Raises UserError if none is short enough."""
    pairs = pairs_of(source, target, max_subwords, labelled=labelled)
    if not len(pairs.index):
        raise UserError(f"{name} has no pair of at most {max_subwords} subwords: raise training.max_subwords.")
    return pairs


def read_tokens(data: Path, split: str) -> tuple[Tokens, Tokens]:
    """Source and target of a split of the bpe stage. Raises UserError for a file that is missing or damaged."""
    return Tokens(data / f"{split}.{SIDES[0]}.safetensors"), Tokens(data / f"{split}.{SIDES[1]}.safetensors")


def measured_pairs(
    source: Tokens, target: Tokens, most: int = MAX_SUBWORDS, setting: str = "", *, labelled: bool = False
) -> Pairs:
    """The pairs of two encoded texts with at most `most` subwords per side; logs how many were left out.

    setting: the setting in config.yaml that limits them.
    """
    pairs = pairs_of(source, target, most, labelled=labelled)
    if pairs.left_out:
        which = f" ({setting})" if setting else ""
        print(f"{pairs.left_out} pairs left out: more than {most} subwords{which}", file=sys.stderr)
    return pairs


def batched(
    members: NDArray[np.int64],
    lengths: NDArray[np.integer],
    tokens: int,
    widths: NDArray[np.integer] | None = None,
) -> Iterator[NDArray[np.int64]]:
    """The runs of `cut`, split where padding to one long sentence would make a batch much larger than `tokens`.

    widths: the lengths that sentences are padded to, if these are not the `lengths` that are counted.
    """
    widths = lengths if widths is None else widths
    for run in cut(members, lengths, tokens):
        start = longest = 0
        for place, width in enumerate((widths[run] + 1).tolist()):
            longest = max(longest, width)
            if place > start and (place + 1 - start) * longest > MOST_PADDED * tokens:
                yield run[start:place]
                start, longest = place, width
        yield run[start:]


def cut(members: NDArray[np.int64], lengths: NDArray[np.integer], tokens: int) -> list[NDArray[np.int64]]:
    """Split a list of sentences into non-empty runs of similar size, about `tokens` tokens each (including EOS).

    The number of runs is rounded, so that slightly more than `tokens` are not split into a full and a tiny run.
    """
    ends = np.cumsum(lengths[members] + 1, dtype=np.int64)
    if not len(ends):
        return []
    total = int(ends[-1])
    runs = max(1, round(total / tokens))
    # A sentence belongs to the run of its last token; a run's first token is the quotient, rounded up.
    firsts = -(-np.arange(1, runs) * total // runs)
    places = np.unique(np.searchsorted(ends, firsts + 1))
    return np.split(members, places[places > 0])

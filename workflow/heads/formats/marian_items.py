"""The tensors and options of a Marian model's file, 8-bit matrices with their multipliers among them.

An 8-bit matrix (`intgemm8`) is int8 numbers, a float32 multiplier m behind them, and padding: weight = number / m,
with m = 127 / max|weight|. The numbers of in x out weights lie transposed, out x in, but for embeddings (`Wemb`).
`X_QuantMultA` is what its engine multiplies the input of X with before rounding it: no weight of the model.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

OPTIONS = "special:model.yml"
FLOAT32, INT8, INTGEMM8 = 0x404, 0x101, 0x4101
WIDTHS = {FLOAT32: 4, INT8: 1, INTGEMM8: 1}
"""Bytes of a number by Marian's number of its type."""
ALIGNMENT = 256
LARGEST = 127
"""Of the magnitudes that an 8-bit number is given; -128 is left out."""
EMBEDDING = "Wemb"


@dataclass(frozen=True, slots=True)
class Item:
    """A tensor as it lies in a file."""

    name: str
    kind: int
    shape: tuple[int, ...]
    """As the model multiplies with it: in x out of a matrix."""
    data: bytes
    """With the multiplier of an 8-bit matrix, and with padding."""

    def floats(self) -> NDArray[np.float32]:
        """[shape] its numbers as float32."""
        if self.kind == INTGEMM8:
            weights = self.quantised().astype(np.float32) / np.float32(self.multiplier())
            return weights if EMBEDDING in self.name else np.ascontiguousarray(weights.T)
        return np.frombuffer(self.data, "<f4", math.prod(self.shape)).reshape(self.shape).astype(np.float32)

    def quantised(self) -> NDArray[np.int8]:
        """The int8 numbers of an 8-bit matrix: out x in, or as an embedding subwords x width."""
        shape = self.shape if EMBEDDING in self.name else self.shape[::-1]
        return np.frombuffer(self.data, np.int8, math.prod(shape)).reshape(shape)

    def multiplier(self) -> float:
        """What the weights of an 8-bit matrix were multiplied with before they were rounded."""
        return float(np.frombuffer(self.data, "<f4", 1, math.prod(self.shape))[0])


@dataclass(frozen=True, slots=True)
class MarianFile:
    """A model's file: tensors by name, in their order."""

    items: Mapping[str, Item]
    gap: bytes | None = None
    """What a `.bin` has in front of its data; without one, zeros up to a multiple of 256 bytes are written."""

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """All tensors as float32."""
        return {name: item.floats() for name, item in self.items.items() if name != OPTIONS}

    def options(self) -> dict[str, Any]:
        """The options of its training. Raises ValueError, which says what is wrong with them, where there are none."""
        if OPTIONS not in self.items:
            raise ValueError(f"has no {OPTIONS}, the options of its training")
        text = self.items[OPTIONS].data.partition(b"\0")[0]
        # PyYAML raises all of these for text that is no YAML, or tags what it does not fit.
        wrong = (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
        try:
            options = yaml.safe_load(text.decode("utf-8"))
        except wrong as error:
            raise ValueError(f"has options that are no YAML ({' '.join(str(error).split())})") from None
        if not isinstance(options, dict) or not all(isinstance(key, str) for key in options):
            raise ValueError("has options that are no names with values")
        return options

    def with_tensors(self, tensors: Mapping[str, NDArray[np.float32]]) -> MarianFile:
        """The same file with other numbers in some tensors, each in its own type and shape.

        A tensor whose numbers are as they were keeps its bytes, and an 8-bit matrix its multiplier as long as that
        gives all its numbers without rounding: where a head becomes zeros, the others stay as they are. Raises
        ValueError for one that the file has not, or has in another shape.
        """
        items = dict(self.items)
        for name, numbers in tensors.items():
            item = items.get(name)
            if item is None or name == OPTIONS or item.shape != numbers.shape:
                raise ValueError(f"{name} of {numbers.shape} is no tensor of this file")
            if not np.array_equal(item.floats(), numbers):
                kept = item.multiplier() if item.kind == INTGEMM8 else None
                made = packed(name, numbers, item.kind, kept).data
                used = used_bytes(item.kind, item.shape)
                items[name] = replace(item, data=made[:used] + item.data[used:])
        return MarianFile(items, self.gap)


def new_file(
    tensors: Mapping[str, NDArray[np.float32]], options: Mapping[str, Any], quantised: Collection[str] = ()
) -> MarianFile:
    """A file of float32 tensors, those in `quantised` as 8-bit matrices, and the options of a training."""
    items = {name: packed(name, value, INTGEMM8 if name in quantised else FLOAT32) for name, value in tensors.items()}
    text = yaml.safe_dump(dict(options)).encode("utf-8") + b"\0"
    return MarianFile({**items, OPTIONS: Item(OPTIONS, INT8, (len(text),), text)})


def packed(name: str, numbers: NDArray[np.float32], kind: int, multiplier: float | None = None) -> Item:
    """A tensor in one of the types of weights, padded with zeros as Marian does.

    multiplier: of an 8-bit matrix, taken where it gives all numbers without rounding. Raises ValueError for what is
    not finite or, as an 8-bit matrix, has not two dimensions.
    """
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} holds what is no finite number")
    if kind == INTGEMM8:
        if numbers.ndim != 2:
            raise ValueError(f"{name} of {numbers.shape} is no matrix")
        matrix = numbers if EMBEDDING in name else numbers.T
        by = _largest_multiplier(numbers) if multiplier is None else np.float32(multiplier)
        whole = _rounded(matrix, by)
        if multiplier is not None and not np.array_equal(whole.astype(np.float32) / by, matrix):
            by = _largest_multiplier(numbers)
            whole = _rounded(matrix, by)
        data = whole.tobytes() + by.astype("<f4").tobytes()
    else:
        data = numbers.astype("<f4").tobytes()
    return Item(name, kind, numbers.shape, data + bytes(aligned(len(data)) - len(data)))


def _largest_multiplier(numbers: NDArray[np.float32]) -> np.float32:
    """That by which the largest weight becomes the largest number, as Marian takes it."""
    largest = np.abs(numbers).max()
    # A matrix of zeros, of an attention without heads, has no largest weight to scale by.
    return np.float32(LARGEST) / largest if largest > 0 else np.float32(1)


def _rounded(numbers: NDArray[np.float32], multiplier: np.float32) -> NDArray[np.int8]:
    whole: NDArray[np.int8] = np.clip(np.rint(numbers * multiplier), -LARGEST, LARGEST).astype(np.int8)
    return whole


def used_bytes(kind: int, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor's data without padding."""
    return math.prod(shape) * WIDTHS[kind] + (4 if kind == INTGEMM8 else 0)


def aligned(size: int) -> int:
    """The next multiple of 256 bytes that holds as many."""
    return -(-size // ALIGNMENT) * ALIGNMENT

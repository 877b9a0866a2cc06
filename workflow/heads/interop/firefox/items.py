"""The tensors and options of a Marian model file, including 8-bit matrices with their multipliers.

An 8-bit matrix (`intgemm8`) has int8 numbers, a float32 multiplier m after them, and padding: weight = number / m, with
m = 127 / max|weight|. The numbers of in x out weights are stored transposed, out x in, except for embeddings (`Wemb`).
`X_QuantMultA` is the factor by which the engine multiplies the input of X before rounding it: not a model weight.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

OPTIONS = "special:model.yml"
FLOAT32, INT8, INTGEMM8 = 0x404, 0x101, 0x4101
WIDTHS = {FLOAT32: 4, INT8: 1, INTGEMM8: 1}
"""Bytes per number for each of Marian's type codes."""
ALIGNMENT = 256
LARGEST = 127
"""The largest magnitude of an 8-bit number; -128 is not used."""
EMBEDDING = "Wemb"


@dataclass(frozen=True, slots=True)
class Item:
    """A tensor as stored in a file."""

    name: str
    kind: int
    shape: tuple[int, ...]
    """As the model multiplies by it: in x out for a matrix."""
    data: bytes
    """Includes the multiplier of an 8-bit matrix, and padding."""

    def floats(self) -> NDArray[np.float32]:
        """Its numbers as float32, [shape]."""
        if self.kind == INTGEMM8:
            weights = self.quantised().astype(np.float32) / np.float32(self.multiplier())
            return weights if EMBEDDING in self.name else np.ascontiguousarray(weights.T)
        return np.frombuffer(self.data, "<f4", math.prod(self.shape)).reshape(self.shape).astype(np.float32)

    def quantised(self) -> NDArray[np.int8]:
        """The int8 numbers of an 8-bit matrix: out x in, or subwords x width for an embedding."""
        shape = self.shape if EMBEDDING in self.name else self.shape[::-1]
        return np.frombuffer(self.data, np.int8, math.prod(shape)).reshape(shape)

    def multiplier(self) -> float:
        """The factor by which the weights of an 8-bit matrix were multiplied before rounding."""
        return float(np.frombuffer(self.data, "<f4", 1, math.prod(self.shape))[0])


@dataclass(frozen=True, slots=True)
class MarianFile:
    """A model file: tensors by name, in file order."""

    items: Mapping[str, Item]
    gap: bytes | None = None
    """The bytes before the data of a `.bin`; if None, zeros are written up to a multiple of 256 bytes."""

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """All tensors as float32."""
        return {name: item.floats() for name, item in self.items.items() if name != OPTIONS}

    def options(self) -> dict[str, Any]:
        """The training options. Raises ValueError, which says what is wrong, if they are missing or invalid."""
        if OPTIONS not in self.items:
            raise ValueError(f"has no {OPTIONS}, the options of its training")
        text = self.items[OPTIONS].data.partition(b"\0")[0]
        # PyYAML raises all of these for text that is not YAML, or for tags that do not fit their values.
        wrong = (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
        try:
            options = yaml.safe_load(text.decode("utf-8"))
        except wrong as error:
            raise ValueError(f"has options that are not YAML ({' '.join(str(error).split())})") from None
        if not isinstance(options, dict) or not all(isinstance(key, str) for key in options):
            raise ValueError("has options that are not names with values")
        return options

    def with_tensors(self, tensors: Mapping[str, NDArray[np.float32]]) -> MarianFile:
        """The same file with other numbers in some tensors, whose types stay the same.

        A tensor whose numbers do not change keeps its bytes, and an 8-bit matrix its multiplier as long as that
        gives all its numbers without rounding: if a head is set to zero, the others stay as they are. Raises
        ValueError for a tensor that the file lacks or has with another number of dimensions.
        """
        items = dict(self.items)
        for name, numbers in tensors.items():
            item = items.get(name)
            if item is None or name == OPTIONS or len(item.shape) != numbers.ndim:
                raise ValueError(f"{name} of {numbers.shape} is not a tensor of this file")
            if item.shape != numbers.shape:
                items[name] = packed(name, numbers, item.kind, item.multiplier() if item.kind == INTGEMM8 else None)
            elif not np.array_equal(item.floats(), numbers):
                kept = item.multiplier() if item.kind == INTGEMM8 else None
                made = packed(name, numbers, item.kind, kept).data
                used = used_bytes(item.kind, item.shape)
                items[name] = replace(item, data=made[:used] + item.data[used:])
        return MarianFile(items, self.gap)

    def with_option(self, name: str, value: int | list[int]) -> MarianFile:
        """The same file with another value of an option, a number or some, all others as they are written."""
        if self.options().get(name) == value:
            return self
        text = self.items[OPTIONS].data.partition(b"\0")[0].decode("utf-8")
        line = re.compile(rf"^{re.escape(name)}:.*(?:\n *- .*)*$", re.MULTILINE)
        written = f"{name}: {value}"
        text = line.sub(written, text) if line.search(text) else f"{text.rstrip()}\n{written}\n"
        data = text.encode("utf-8") + b"\0"
        item = replace(self.items[OPTIONS], shape=(len(data),), data=data + bytes(aligned(len(data)) - len(data)))
        return MarianFile({**self.items, OPTIONS: item}, self.gap)


def packed(name: str, numbers: NDArray[np.float32], kind: int, multiplier: float | None = None) -> Item:
    """A tensor in one of the types of weights, padded with zeros as Marian does.

    multiplier: for an 8-bit matrix, used if it gives all numbers without rounding. Raises ValueError for numbers that
    are not finite, and for an 8-bit matrix that does not have two dimensions.
    """
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    if kind == INTGEMM8:
        if numbers.ndim != 2:
            raise ValueError(f"{name} of {numbers.shape} is not a matrix")
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
    """The factor that turns the largest weight into the largest number, as in Marian."""
    largest = np.abs(numbers).max()
    # A matrix of zeros, as in attention without heads, has no largest weight to scale by, and one of next to nothing
    # one that no float32 can scale.
    return np.float32(LARGEST) / largest if largest > LARGEST / np.finfo(np.float32).max else np.float32(1)


def _rounded(numbers: NDArray[np.float32], multiplier: np.float32) -> NDArray[np.int8]:
    whole: NDArray[np.int8] = np.clip(np.rint(numbers * multiplier), -LARGEST, LARGEST).astype(np.int8)
    return whole


def used_bytes(kind: int, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor's data without padding."""
    return math.prod(shape) * WIDTHS[kind] + (4 if kind == INTGEMM8 else 0)


def aligned(size: int) -> int:
    """`size` in bytes rounded up to a multiple of 256."""
    return -(-size // ALIGNMENT) * ALIGNMENT

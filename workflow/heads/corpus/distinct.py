"""A set of texts that remembers in constant memory whether it has met one before.

A Bloom filter (Bloom 1970, "Space/time trade-offs in hash coding with allowable errors"): one digest a text, a few bits
each. It never takes a repeated text for a new one; at the stated rate it takes a new text for a repeated one.
"""

from __future__ import annotations

import hashlib
import math

DIGEST_BYTES = 16
HALF = DIGEST_BYTES // 2


class SeenBefore:
    """Remember texts; memory is fixed at construction.

    `items` is the number of texts to be held, `false_positive_rate` the share of new texts that `add` may call old once
    that many are held (lower before, growing slowly after). Five million at 0.001 take 9 MB.
    """

    __slots__ = ("_bits", "_probes", "_size")

    def __init__(self, items: int, false_positive_rate: float = 0.001) -> None:
        """Raise ValueError unless `items` is at least 1 and the rate lies between 0 and 1."""
        if items < 1 or not 0.0 < false_positive_rate < 1.0:
            raise ValueError(f"need items >= 1 and 0 < rate < 1, not {items} and {false_positive_rate}")
        size = max(64, math.ceil(-items * math.log(false_positive_rate) / math.log(2.0) ** 2))
        self._size = size | 1  # an odd size keeps the second hash from cycling over few places
        self._probes = max(1, round(self._size / items * math.log(2.0)))
        self._bits = bytearray((self._size + 7) // 8)

    @property
    def memory_bytes(self) -> int:
        """Size of the bit field."""
        return len(self._bits)

    def add(self, text: str) -> bool:
        """Remember `text`; True when it is new."""
        digest = hashlib.blake2b(text.encode("utf-8"), digest_size=DIGEST_BYTES).digest()
        place = int.from_bytes(digest[:HALF], "little")
        step = int.from_bytes(digest[HALF:], "little") | 1
        bits, size, new = self._bits, self._size, False
        for _ in range(self._probes):
            byte, bit = divmod(place % size, 8)
            mask = 1 << bit
            if not bits[byte] & mask:
                bits[byte] |= mask
                new = True
            place += step
        return new

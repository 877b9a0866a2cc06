"""A set of texts that knows, in constant memory, whether it has seen a text before.

A Bloom filter (Bloom 1970, "Space/time trade-offs in hash coding with allowable errors"): one digest per text, a few
bits each. It never mistakes a repeated text for a new one; it mistakes a new text for a repeated one at the given rate.
"""

import hashlib
import math
from collections.abc import Sequence

import numpy as np

DIGEST_BYTES = 16
HALF = DIGEST_BYTES // 2


class SeenBefore:
    """A Bloom filter for texts, whose memory is fixed at construction.

    `items` is the number of texts to hold, `false_positive_rate` the share of new texts that `add` may call old once it
    holds that many (lower before, growing slowly after). Five million at 0.001 take 9 MB.
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

    def add(self, text: str) -> bool:
        """Add `text` and return whether it is new."""
        of_text = digest(text)
        place = int.from_bytes(of_text[:HALF], "little")
        step = int.from_bytes(of_text[HALF:], "little") | 1
        bits, size, new = self._bits, self._size, False
        for _ in range(self._probes):
            byte, bit = divmod(place % size, 8)
            mask = 1 << bit
            if not bits[byte] & mask:
                bits[byte] |= mask
                new = True
            place += step
        return new

    def add_digests(self, digests: Sequence[bytes]) -> list[bool]:
        """Add the texts with these digests in order, and return for each whether it was new, as `add` does."""
        size = np.uint64(self._size)
        starts, steps = np.frombuffer(b"".join(digests), "<u8").reshape(-1, 2).T
        steps = (steps | np.uint64(1)) % size
        places = ((starts % size)[:, None] + steps[:, None] * np.arange(self._probes, dtype=np.uint64)) % size
        bits = np.frombuffer(self._bits, np.uint8)
        bytes_of, masks = places // np.uint64(8), np.uint8(1) << (places % np.uint64(8)).astype(np.uint8)
        unset = bits[bytes_of] & masks == 0
        # A text is new if it is the first, in reading order, to claim one of the places that were still unset.
        _, claims = np.unique(places[unset], return_index=True)
        new = np.zeros(len(digests), bool)
        new[np.nonzero(unset)[0][claims]] = True
        np.bitwise_or.at(bits, bytes_of[unset], masks[unset])
        return new.tolist()


def digest(text: str) -> bytes:
    """Digest of a text, which determines its bits in the filter."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=DIGEST_BYTES).digest()

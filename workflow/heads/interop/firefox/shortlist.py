"""The shortlist of a Marian model, `lex.*.bin`: the likely target subwords for each source subword.

Little-endian: uint64 magic number, checksum, first, best, number of offsets, number of entries; the offsets as uint64,
one per source subword and one after the last; the entries as uint32, ids of target subwords. Subword s has the entries
from offset s up to offset s + 1, at most `best`; the `first` lowest ids of the target are always candidates. Source:
src/data/shortlist.h and src/common/hash.h of browsermt/marian-dev.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heads.base.files import UserError
from heads.interop.firefox.parts import MAGIC

HEADER = struct.Struct("<6Q")


@dataclass(frozen=True, slots=True)
class Shortlist:
    """Likely target subwords for each source subword."""

    first: int
    """The number of lowest target ids that are always candidates; special tokens come first."""
    offsets: NDArray[np.int64]
    """[source subwords + 1]"""
    targets: NDArray[np.uint32]
    """[entries]"""

    def candidates(self, sources: Iterable[int]) -> NDArray[np.int64]:
        """The ids, in order, of the target subwords that may translate a sentence of these source subwords.

        If both sides share one vocabulary, Marian adds the source subwords themselves; it also adds the next ids up to
        a multiple of eight, to suit its processors. Both are left to the caller.
        """
        likely = [self.targets[self.offsets[source] : self.offsets[source + 1]] for source in {*sources}]
        return np.unique(np.concatenate([np.arange(self.first), *likely]).astype(np.int64))


def read_shortlist(path: Path, vocabularies: tuple[int, int]) -> Shortlist:
    """Read a shortlist for source and target vocabularies of these sizes.

    Raises UserError for a file that is missing, damaged, of other sizes, or not a shortlist.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): give a model's lex.*.bin.") from None
    if len(content) < HEADER.size or content[:8] != struct.pack("<Q", MAGIC):
        raise UserError(f"{path} is not a shortlist in Marian's binary format: write one with marian-conv --shortlist.")
    _, checksum, first, _, count, entries = HEADER.unpack_from(content)
    if len(content) != HEADER.size + 8 * count + 4 * entries or checksum != checksum_of(content[16:]):
        raise UserError(f"{path} is cut off or damaged: copy it again.")
    offsets = np.frombuffer(content, "<u8", count, HEADER.size)
    targets = np.frombuffer(content, "<u4", entries, HEADER.size + 8 * count)
    source, target = vocabularies
    fits = count == source + 1 and offsets[0] == 0 and offsets[-1] == entries and bool((targets < target).all())
    if not fits or (offsets[1:] < offsets[:-1]).any():
        raise UserError(f"{path} does not fit vocabularies of {source} and {target} subwords: give the model's own.")
    return Shortlist(min(first, target), offsets.astype(np.int64), targets)


def checksum_of(content: bytes) -> int:
    """Marian's checksum of what follows it in a shortlist: each whole uint64 is folded in as by Boost's hash."""
    seed = 0
    for word in np.frombuffer(content, "<u8", len(content) // 8).tolist():
        seed ^= (word + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & 0xFFFFFFFFFFFFFFFF
    return seed

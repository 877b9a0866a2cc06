"""The filters of a parallel corpus, in a fixed order, each counted.

A pair is taken out by the first filter that it fails:

1. `empty`: a side without text.
2. `control`: a side with a C0 or C1 control character other than tab and carriage return, or with U+FFFD,
   which an earlier conversion leaves in place of what it could not read.
3. `max_words`: a side of more than `max_words` words, counted by white space.
4. `length_ratio`: one side has more than `max_length_ratio` times the words of the other.
5. `min_overlap`: the relative time overlap is smaller (only where `min_overlap` is set).
6. `duplicate`: the same source with the same target came before. Another translation of a known source is
   kept: it is other information, while an exact copy only weighs a pair twice.
7. `leakage`: source or target stands in dev or test, compared in folded case and white space. With
   `leakage: source` only sources are compared: in subtitles the commonest answers would otherwise vanish from
   training as soon as one held-out line has them as its target. Of lines held out for roles only the source
   counts under either rule, for no translation of them is ever scored.
8. `limit`: pairs beyond `limit`, taken evenly from the whole stream and so from every part by its size.

What is kept is written in Unicode's form NFC with single spaces, in all splits. Dev and test pass no filter:
an empty side there is an error, since dropping lines silently would change the test set.
"""

from __future__ import annotations

import hashlib
import heapq
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from heads.base.pool import chunks, in_order
from heads.config.corpora import Cleaning
from heads.corpus.distinct import SeenBefore, digest
from heads.corpus.pairs import RawPair

FILTERS = ("empty", "control", "max_words", "length_ratio", "min_overlap", "duplicate", "leakage", "limit")
TABLE_COLUMNS = ("split", "filter", "pairs_in", "pairs_removed", "pairs_left", "share_removed")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")
CHUNK_PAIRS = 2000

Pair = tuple[str, str]


def normalise(text: str) -> str:
    """Text in NFC with single spaces and none at its ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def fingerprint(text: str) -> int:
    """64 bits of a sentence in folded case and white space."""
    folded = " ".join(text.casefold().split())
    return int.from_bytes(hashlib.blake2b(folded.encode(), digest_size=8).digest(), "big")


def failed_filter(raw: RawPair, source: str, target: str, cleaning: Cleaning) -> str | None:
    """The first of the filters 1 to 5 that a pair fails; `source` and `target` are its normalised sides."""
    if not source or not target:
        return "empty"
    if CONTROL.search(raw.source) or CONTROL.search(raw.target):
        return "control"
    fewer, more = sorted((source.count(" ") + 1, target.count(" ") + 1))
    if more > cleaning.max_words:
        return "max_words"
    if more > cleaning.max_length_ratio * fewer:
        return "length_ratio"
    if cleaning.min_overlap is not None and (raw.overlap is None or raw.overlap < cleaning.min_overlap):
        return "min_overlap"
    return None


class Judged(NamedTuple):
    """A normalised pair, the first of the filters 1 to 5 that it fails, and what filter 6 remembers it by."""

    source: str
    target: str
    failed: str | None
    digest: bytes


def judge(cleaning: Cleaning, pairs: Iterable[RawPair]) -> list[Judged]:
    """What can be said of each pair by itself."""
    judged = []
    for raw in pairs:
        source, target = normalise(raw.source), normalise(raw.target)
        failed = failed_filter(raw, source, target, cleaning)
        judged.append(Judged(source, target, failed, b"" if failed else digest(f"{source}\t{target}")))
    return judged


def clean(
    pairs: Iterable[RawPair], cleaning: Cleaning, seen: SeenBefore, tally: Counter[str], workers: int = 1
) -> Iterator[Pair]:
    """Normalised pairs that pass filters 1 to 6; `tally` counts pairs `read` and those each filter took.

    With more than one worker, as many other processes normalise and judge; the pairs and their order stay the same.
    """
    for chunk in in_order(partial(judge, cleaning), chunks(pairs, CHUNK_PAIRS), workers):
        tally["read"] += len(chunk)
        new = iter(seen.add_digests([judged.digest for judged in chunk if judged.failed is None]))
        for source, target, failed, _ in chunk:
            if failed is None and not next(new):
                failed = "duplicate"
            if failed is None:
                yield source, target
            else:
                tally[failed] += 1


class HeldSentences:
    """The sentences of dev and test and those held out for roles, kept as 64-bit fingerprints."""

    def __init__(self) -> None:
        self.sources: set[int] = set()
        self.targets: set[int] = set()

    def add(self, source: str, target: str) -> None:
        """Remember a pair of dev or test."""
        self.add_source(source)
        self.targets.add(fingerprint(target))

    def add_source(self, source: str) -> None:
        """Remember a sentence of which only the source is held out."""
        self.sources.add(fingerprint(source))

    def leaks(self, source: str, target: str, rule: str) -> bool:
        """Whether a training pair stands in dev or test under the rule `either` or `source`."""
        return fingerprint(source) in self.sources or (rule == "either" and fingerprint(target) in self.targets)


class HoldOut:
    """Chooses `size` pairs with distinct sources out of a stream, by the smallest fingerprints.

    Every distinct source has the same chance, however often it comes, and the choice does not depend on the
    order.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._heap: list[tuple[int, str, str]] = []
        self._chosen: set[int] = set()

    def offer(self, source: str, target: str) -> None:
        """Consider a pair; of several with one source the first is kept."""
        key = fingerprint(source)
        if key in self._chosen or (len(self._heap) == self.size and key > -self._heap[0][0]):
            return
        self._chosen.add(key)
        if len(self._heap) < self.size:
            heapq.heappush(self._heap, (-key, source, target))
        else:
            self._chosen.discard(-heapq.heapreplace(self._heap, (-key, source, target))[0])

    def pairs(self) -> list[Pair]:
        """The chosen pairs in the order of their fingerprints, which mixes them."""
        return [(source, target) for _, source, target in sorted(self._heap, reverse=True)]


def evenly(pairs: Iterable[Pair], available: int, limit: int) -> Iterator[Pair]:
    """Exactly `limit` of `available` pairs, at even distances; all when there are no more than that."""
    for index, pair in enumerate(pairs):
        if available <= limit or (index + 1) * limit // available > index * limit // available:
            yield pair


def filter_rows(split: str, tally: Counter[str], filters: Iterable[str]) -> list[dict[str, object]]:
    """Rows of the table of filters for one split, in the order of the filters."""
    rows: list[dict[str, object]] = []
    left = tally["read"]
    for name in filters:
        before, removed = left, tally[name]
        left = before - removed
        share = removed / before if before else 0.0
        rows.append(dict(zip(TABLE_COLUMNS, (split, name, before, removed, left, share), strict=True)))
    return rows

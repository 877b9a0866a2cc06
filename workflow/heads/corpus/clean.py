"""Filter a parallel corpus in a fixed order and count what each filter removes.

A pair is removed by the first filter that it fails:

1. `empty`: a side has no text.
2. `control`: a side has a C0 or C1 control character other than tab and carriage return, or U+FFFD, which an earlier
   conversion puts in place of what it could not decode.
3. `max_words`: a side has more than `max_words` words, counted by white space; in a script that has none between words,
   two letters count as one word.
4. `length_ratio`: one side has more than `max_length_ratio` times as many words as the other.
5. `min_overlap`: the relative time overlap is smaller (only if `min_overlap` is set).
6. `duplicate`: the same source with the same target came earlier. Another translation of the same source is kept:
   it adds information, while an exact copy only counts a pair twice.
7. `leakage`: source or target is in dev or test, ignoring case and differences in white space. With `leakage: source`
   only sources are compared: in subtitles the commonest answers would otherwise vanish from training as soon as one
   held-out line has them as its target. For lines held out for roles only the source counts under either rule, since
   their translations are never scored.
8. `limit`: pairs beyond `limit`; those kept are evenly spaced over the stream, so every part keeps its share.

All splits are written in Unicode form NFC with single spaces. Dev and test go through no filter: an empty side there is
an error, since dropping lines silently would change the test set.
"""

import hashlib
import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from heads.base.files import normalise
from heads.base.names import SPLITS
from heads.base.pool import chunks, in_order
from heads.base.scripts import words_in
from heads.config.corpora import Cleaning
from heads.corpus.distinct import SeenBefore, digest
from heads.corpus.pairs import RawPair

FILTERS = ("empty", "control", "max_words", "length_ratio", "min_overlap", "duplicate", "leakage", "limit")
TABLE_COLUMNS = ("split", "filter", "pairs_in", "pairs_removed", "pairs_left", "share_removed")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")
CHUNK_PAIRS = 2000

Pair = tuple[str, str]


def fingerprint(text: str) -> int:
    """64-bit fingerprint of a sentence, ignoring case and differences in white space."""
    folded = " ".join(text.casefold().split())
    return int.from_bytes(hashlib.blake2b(folded.encode(), digest_size=8).digest(), "big")


def failed_filter(raw: RawPair, source: str, target: str, cleaning: Cleaning) -> str | None:
    """The first of filters 1 to 5 that a pair fails, or None; `source` and `target` are its normalised sides."""
    if not source or not target:
        return "empty"
    if CONTROL.search(raw.source) or CONTROL.search(raw.target):
        return "control"
    fewer, more = sorted((words_in(source), words_in(target)))
    if more > cleaning.max_words:
        return "max_words"
    if more > cleaning.max_length_ratio * fewer:
        return "length_ratio"
    if cleaning.min_overlap is not None and (raw.overlap is None or raw.overlap < cleaning.min_overlap):
        return "min_overlap"
    return None


def judge(cleaning: Cleaning, pairs: Iterable[RawPair]) -> list[tuple[str, str, str | None, bytes]]:
    """Both sides of each pair, normalised, the first of filters 1 to 5 that it fails, and its digest for filter 6."""
    judged = []
    for raw in pairs:
        source, target = normalise(raw.source), normalise(raw.target)
        failed = failed_filter(raw, source, target, cleaning)
        judged.append((source, target, failed, b"" if failed else digest(f"{source}\t{target}")))
    return judged


def clean(
    pairs: Iterable[RawPair], cleaning: Cleaning, seen: SeenBefore, tally: Counter[str], workers: int = 1
) -> Iterator[Pair]:
    """Normalised pairs that pass filters 1 to 6, for any `workers` the same; `tally` counts those read and removed."""
    for chunk in in_order(partial(judge, cleaning), chunks(pairs, CHUNK_PAIRS), workers):
        tally["read"] += len(chunk)
        new = iter(seen.add_digests([found for *_, failed, found in chunk if failed is None]))
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

    def remember(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The same pairs of dev or test, each added as it passes."""
        for source, target in pairs:
            self.sources.add(fingerprint(source))
            self.targets.add(fingerprint(target))
            yield source, target

    def leaks(self, source: str, target: str, rule: str) -> bool:
        """Whether a training pair is in dev or test under the rule `either` or `source`."""
        return fingerprint(source) in self.sources or (rule == "either" and fingerprint(target) in self.targets)


class HoldOut:
    """Chooses `size` pairs with distinct sources from a stream: those with the smallest fingerprints.

    Every distinct source is equally likely, however often it occurs and in whatever order.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._heap: list[tuple[int, str, str]] = []
        self._chosen: set[int] = set()

    def offer(self, source: str, target: str) -> None:
        """Consider a pair; among several with the same source the first is kept."""
        if not self.size:
            return
        key = fingerprint(source)
        if key in self._chosen or (len(self._heap) == self.size and key > -self._heap[0][0]):
            return
        self._chosen.add(key)
        if len(self._heap) < self.size:
            heapq.heappush(self._heap, (-key, source, target))
        else:
            self._chosen.discard(-heapq.heapreplace(self._heap, (-key, source, target))[0])

    def pairs(self) -> list[Pair]:
        """The chosen pairs in the order of their fingerprints, which shuffles them."""
        return [(source, target) for _, source, target in sorted(self._heap, reverse=True)]


def evenly(pairs: Iterable[Pair], available: int, limit: int) -> Iterator[Pair]:
    """Exactly `limit` of `available` pairs, evenly spaced; all if there are no more than that."""
    for index, pair in enumerate(pairs):
        if available <= limit or (index + 1) * limit // available > index * limit // available:
            yield pair


def filter_table(tallies: Mapping[str, Counter[str]], filters: Sequence[str]) -> list[dict[str, object]]:
    """Rows of the filter table for all splits; dev and test go through the first filter alone."""
    rows: list[dict[str, object]] = []
    for split in SPLITS:
        left = tallies[split]["read"]
        for name in filters if split == "train" else filters[:1]:
            before, removed = left, tallies[split][name]
            left = before - removed
            share = removed / before if before else 0.0
            rows.append(dict(zip(TABLE_COLUMNS, (split, name, before, removed, left, share), strict=True)))
    return rows

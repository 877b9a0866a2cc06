"""The sentence pairs that cross-attention heads are measured on, with or without links of a word alignment."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from heads.analysis.alignment_heads import Gold
from heads.base.files import UserError
from heads.config.analyses import AlignmentHeadsSettings
from heads.syntax.alignment import Words, usable_pairs, words_of
from heads.syntax.pharaoh import AlignedPair, Lines
from heads.text.vocabulary import Vocabulary


def golds_of(
    pairs: Sequence[AlignedPair], vocabularies: Sequence[Vocabulary], settings: AlignmentHeadsSettings, name: str
) -> list[Gold]:
    """The first `settings.sentences` pairs in subwords of both vocabularies, without those that cannot be measured.

    Pairs left out are reported on standard error, with the `name` of the alignment. Raises UserError if no link is
    left.
    """
    taken = pairs[: settings.sentences or None]
    sources = words_of((pair.source for pair in taken), vocabularies[0])
    targets = words_of((pair.target for pair in taken), vocabularies[1])
    sides = list(zip(sources, targets, strict=True))
    kept = usable_pairs(sides, settings.max_subwords)
    reasons = (
        f"a source of one word, more than {settings.max_subwords} subwords on a side, or words that subwords do not "
        "cover exactly"
    )
    if not any(taken[number].links for number in kept):
        raise UserError(
            f"{name}: none of its {len(taken)} pairs has links and can be measured ({reasons} exclude a pair): "
            "give an alignment of this text."
        )
    if len(kept) != len(taken):
        print(f"{name}: {len(kept)} of {len(taken)} pairs measured; the others have {reasons}", file=sys.stderr)
    golds = []
    for number in kept:
        source, target = sides[number]
        linked = np.zeros((len(source), len(target)), bool)
        for link in taken[number].links:
            linked[link] = True
        golds.append(Gold(source, target, linked))
    return golds


def unlinked(
    texts: Sequence[Lines], vocabularies: Sequence[Vocabulary], settings: AlignmentHeadsSettings
) -> list[Gold]:
    """The first pairs of a text in subwords, without links; pairs with an empty or too long side are left out.

    Raises UserError if no pair is left.
    """
    encoded = [
        vocabulary.encode(text.lines[: settings.sentences or None])
        for text, vocabulary in zip(texts, vocabularies, strict=True)
    ]
    pairs = [
        Gold(_unparsed(number, source), _unparsed(number, target), np.zeros((0, 0), bool))
        for number, (source, target) in enumerate(zip(*encoded, strict=True))
        if all(0 < len(ids) <= settings.max_subwords for ids in (source, target))
    ]
    if not pairs:
        raise UserError(
            f"{texts[0].name} has no sentence of at most {settings.max_subwords} subwords: raise max_subwords."
        )
    return pairs


def _unparsed(number: int, ids: Sequence[int]) -> Words:
    """A sentence in subwords, with no known words."""
    return Words(number, (), (), np.array(ids, np.int32), np.zeros((0, len(ids))))

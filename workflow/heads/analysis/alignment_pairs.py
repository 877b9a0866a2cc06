"""The pairs that alignment heads are measured on, out of those that a word alignment is of."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from heads.analysis.alignment_heads import Gold
from heads.base.files import UserError
from heads.config.analyses import AlignmentHeadsSettings
from heads.syntax.alignment import usable_pairs, words_of
from heads.syntax.pharaoh import AlignedPair
from heads.text.vocabulary import Vocabulary


def golds_of(
    pairs: Sequence[AlignedPair], vocabularies: Sequence[Vocabulary], settings: AlignmentHeadsSettings, name: str
) -> list[Gold]:
    """The first `settings.sentences` pairs in pieces of both vocabularies, without those that can not be measured.

    What is left out goes to standard error, with the `name` of the alignment. Raises UserError where no link is left.
    """
    taken = pairs[: settings.sentences or None]
    sources = words_of((pair.source for pair in taken), vocabularies[0])
    targets = words_of((pair.target for pair in taken), vocabularies[1])
    sides = list(zip(sources, targets, strict=True))
    kept = usable_pairs(sides, settings.max_pieces)
    reasons = (
        f"a source of one word, more than {settings.max_pieces} pieces on a side, or words that pieces do not cover "
        "exactly"
    )
    if not any(taken[number].links for number in kept):
        raise UserError(
            f"{name}: of its {len(taken)} pairs none with a link can be measured ({reasons} leave a pair out): "
            "give an alignment of this text."
        )
    if len(kept) != len(taken):
        print(f"{name}: {len(kept)} of {len(taken)} pairs measured; left out for {reasons}", file=sys.stderr)
    golds = []
    for number in kept:
        source, target = sides[number]
        linked = np.zeros((len(source), len(target)), bool)
        for link in taken[number].links:
            linked[link] = True
        golds.append(Gold(source, target, linked))
    return golds

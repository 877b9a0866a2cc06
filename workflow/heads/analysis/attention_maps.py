"""Attention maps on words, to be looked at: a few parsed sentences, all encoder heads. No torch.

A multiword token is one word of a map (see `heads.syntax.alignment`); it shows the first relation that leads out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heads.config.analyses import MapsSettings
from heads.syntax.alignment import SentenceAttention, Words, on_words

DIGITS = 4


def sentences_to_show(sentences: Iterable[Words], settings: MapsSettings) -> list[Words]:
    """The first few sentences whose number of words is between `min_words` and `max_words`."""
    fitting = (words for words in sentences if settings.min_words <= len(words) <= settings.max_words)
    return list(islice(fitting, settings.sentences))


def maps(attended: Iterable[SentenceAttention], live: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """The map of each sentence, in the order of their file.

    live: the live heads of every layer, as in `ModelShape.live_heads["enc_self"]`. `tree_heads` are
    1-based, 0 at the root; `weights["enc_self"]` is nested by layer, its live heads, word that attends,
    word attended to.
    """
    ends = np.cumsum([len(heads) for heads in live])
    return [_map(member, ends[:-1]) for member in sorted(attended, key=lambda member: member[0].number)]


def _map(member: SentenceAttention, ends: NDArray[np.int64]) -> dict[str, Any]:
    words, weights = member
    relations, tree_heads = ["root"] * len(words), [0] * len(words)
    for arc in reversed(words.arcs):
        relations[arc.dependent], tree_heads[arc.dependent] = arc.relation, arc.head + 1
    by_layer = np.split(on_words(weights, words.membership).round(DIGITS), ends)
    return {
        "words": list(words.forms),
        "relations": relations,
        "tree_heads": tree_heads,
        "weights": {"enc_self": [layer.tolist() for layer in by_layer]},
    }

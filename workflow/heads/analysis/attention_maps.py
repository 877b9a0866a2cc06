"""Attention maps to be looked at: a few sentences, what a model makes of them, and all its heads meanwhile. No torch.

A weight is a byte, 255 for 1; the bytes of a kind of attention stand in base64, so that a page can hold many.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heads.config.analyses import MapsSettings
from heads.syntax.alignment import Words, on_words
from heads.text.vocabulary import Vocabulary

FULL = 255


@dataclass(frozen=True, slots=True)
class Translated:
    """A sentence, its translation by a model, and the weights of the model's heads while it wrote that.

    target: ids of the translation's pieces, without start and end. weights: by kind of attention [N, Q, K], heads in
    the order of `ModelShape.heads`. The source has its end sign behind it. In the decoder a row is a piece that is
    being written, the end sign at last; what it can look at of its own side is the start sign and all pieces before.
    """

    words: Words
    target: list[int]
    weights: Mapping[str, NDArray[np.float32]]


def sentences_to_show(sentences: Iterable[Words], settings: MapsSettings) -> list[Words]:
    """The first few sentences whose number of words is between `min_words` and `max_words`."""
    fitting = (words for words in sentences if settings.min_words <= len(words) <= settings.max_words)
    return list(islice(fitting, settings.sentences))


def maps(translated: Iterable[Translated], source: Vocabulary, target: Vocabulary) -> list[dict[str, Any]]:
    """The maps of each sentence, in the order of their file, as they stand in maps.json.

    words, relations, tree_heads: of surface words (see `heads.syntax.alignment`), which show the first relation that
    leads out of them; tree_heads are 1-based and 0 at the root, and everywhere without a tree. pieces: the source as
    the model reads it, without its end sign; membership: for every piece the words that it lies in, with its share in
    each. translation, target_pieces: what the model wrote. weights: base64 of bytes [N, Q, K] as of `Translated`.
    """
    return [_map(member, source, target) for member in sorted(translated, key=lambda member: member.words.number)]


def _map(member: Translated, source: Vocabulary, target: Vocabulary) -> dict[str, Any]:
    words = member.words
    relations, tree_heads = ["root"] * len(words), [0] * len(words)
    for arc in reversed(words.arcs):
        relations[arc.dependent], tree_heads[arc.dependent] = arc.relation, arc.head + 1
    return {
        "number": words.number,
        "words": list(words.forms),
        "relations": relations,
        "tree_heads": tree_heads,
        "pieces": source.pieces(words.pieces),
        "membership": [
            [[int(word), round(float(column[word]), 4)] for word in np.flatnonzero(column)]
            for column in words.membership.T
        ],
        "translation": target.decode([member.target])[0],
        "target_pieces": target.pieces(member.target),
        "weights": {kind: packed(weights) for kind, weights in member.weights.items()},
    }


def packed(shares: NDArray[np.floating]) -> str:
    """Shares between 0 and 1 as bytes in base64."""
    return b64encode((shares * FULL).round().astype(np.uint8).tobytes()).decode("ascii")


def unpacked(text: str) -> NDArray[np.float64]:
    """What `packed` wrote, without its shape."""
    return np.frombuffer(b64decode(text), np.uint8) / FULL


def encoder_on_words(sentence: Mapping[str, Any]) -> NDArray[np.float64]:
    """Encoder self-attention of a sentence of maps.json between its words [N, W, W], as `on_words` has it.

    What goes to the end sign is left out.
    """
    member = np.zeros((len(sentence["words"]), len(sentence["pieces"])))
    for piece, shares in enumerate(sentence["membership"]):
        for word, share in shares:
            member[word, piece] = share
    read = len(sentence["pieces"]) + 1
    return on_words(unpacked(sentence["weights"]["enc_self"]).reshape(-1, read, read)[:, :-1, :-1], member)

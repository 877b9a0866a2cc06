"""Attention maps to be looked at: a few sentences, what a model makes of them, and all its heads meanwhile. No torch.

A model that classifies reads examples, of one sentence or two, and tells a label where others translate.

A weight is a byte, 255 for 1; the bytes of a kind of attention stand in base64, so that a page can hold many.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heads.config.analyses import MapsSettings
from heads.syntax.alignment import Arc, Words, on_words
from heads.text.special_ids import BOS, EOS
from heads.text.vocabulary import Vocabulary
from heads.text.wordpieces import BLANK

FULL = 255
SIGNS = {BOS: "\u27e8start\u27e9", EOS: "\u27e8separator\u27e9"}
"""What stands in maps for the start of an example and for the separator behind each of its sentences."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A sentence, its translation by a model, and the weights of the model's heads while it wrote that.

    target: ids of the translation's subwords, without start and end. weights: by kind of attention [N, Q, K], heads in
    the order of `ModelShape.heads`. The source has its end sign behind it. In the decoder a row is a subword that is
    being written, the end sign at last; what it can look at of its own side is the start sign and all subwords before.
    """

    words: Words
    target: list[int]
    weights: Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Classified:
    """An example, the place of the predicted label among all labels, and the weights of its heads meanwhile.

    words: from `framed`. weights: [N, P, P], heads in the order of `ModelShape.heads`, signs among the P subwords.
    """

    words: Words
    label: int
    weights: NDArray[np.float32]


def sentences_to_show(sentences: Iterable[Words], settings: MapsSettings) -> list[Words]:
    """The first few sentences whose number of words is between `min_words` and `max_words`."""
    fitting = (words for words in sentences if settings.min_words <= len(words) <= settings.max_words)
    return list(islice(fitting, settings.sentences))


def examples_to_show(examples: Iterable[Sequence[Words]], settings: MapsSettings) -> list[Words]:
    """The same of examples, by the words of all their sentences; each as the model reads it, see `framed`."""
    fitting = (
        framed(number, sentences)
        for number, sentences in enumerate(examples)
        if settings.min_words <= sum(map(len, sentences)) <= settings.max_words
    )
    return list(islice(fitting, settings.sentences))


def framed(number: int, sentences: Sequence[Words]) -> Words:
    """The sentences of an example one behind the other, in the signs that the model reads with them.

    A sign is a word of one subword, without arcs.
    """
    separator = Words(number, (SIGNS[EOS],), (), np.array([EOS], np.int32), np.ones((1, 1)))
    parts = [replace(separator, forms=(SIGNS[BOS],), subwords=np.array([BOS], np.int32))]
    for sentence in sentences:
        parts += [sentence, separator]
    forms = tuple(form for part in parts for form in part.forms)
    subwords = np.concatenate([part.subwords for part in parts])
    arcs: list[Arc] = []
    membership = np.zeros((len(forms), len(subwords)))
    word = subword = 0
    for part in parts:
        words, own = part.membership.shape
        membership[word : word + words, subword : subword + own] = part.membership
        arcs += [Arc(arc.dependent + word, arc.head + word, arc.relation) for arc in part.arcs]
        word, subword = word + words, subword + own
    return Words(number, forms, tuple(arcs), subwords, membership)


def maps(translated: Iterable[Translated], source: Vocabulary, target: Vocabulary) -> list[dict[str, Any]]:
    """The maps of each sentence, in the order of their file, as they stand in maps.json.

    words, relations, tree_heads: of surface words (see `heads.syntax.alignment`), which show the first relation that
    leads out of them; tree_heads are 1-based and 0 at the root, and everywhere without a tree. subwords: the source as
    the model reads it, without its end sign; membership: for every subword the words that it lies in, with its share in
    each. translation, target_subwords: what the model wrote. weights: base64 of bytes [N, Q, K] as of `Translated`.
    """
    return [
        {
            **_read(member.words, source),
            "translation": target.decode([member.target])[0],
            "target_subwords": target.subwords(member.target),
            "weights": {kind: packed(weights) for kind, weights in member.weights.items()},
        }
        for member in sorted(translated, key=lambda member: member.words.number)
    ]


def maps_of_examples(
    classified: Iterable[Classified], source: Vocabulary, labels: Sequence[str], wanted: Sequence[str]
) -> list[dict[str, Any]]:
    """The maps of each example, in the order of their file, as they stand in maps.json of a model that classifies.

    As of `maps`, but that signs stand among words and subwords, and in the place of a translation `wanted`, what the
    corpus says, and `label`, what the model tells. The arcs are of each sentence by itself; no trees, no arcs. weights:
    of enc_self, bytes [N, P, P]. labels: all that the model knows, in its order. wanted: a label a line of the file.
    """
    return [
        {
            **_read(member.words, source),
            "wanted": wanted[member.words.number],
            "label": labels[member.label],
            "weights": {"enc_self": packed(member.weights)},
        }
        for member in sorted(classified, key=lambda member: member.words.number)
    ]


def _read(words: Words, source: Vocabulary) -> dict[str, Any]:
    """What the model reads: words, their tree and their subwords."""
    relations, tree_heads = ["root"] * len(words), [0] * len(words)
    for arc in reversed(words.arcs):
        relations[arc.dependent], tree_heads[arc.dependent] = arc.relation, arc.head + 1
    return {
        "number": words.number,
        "words": list(words.forms),
        "relations": relations,
        "tree_heads": tree_heads,
        "subwords": [
            BLANK + SIGNS[subword] if subword in SIGNS else name
            for subword, name in zip(words.subwords.tolist(), source.subwords(words.subwords), strict=True)
        ],
        "membership": [
            [[int(word), round(float(column[word]), 4)] for word in np.flatnonzero(column)]
            for column in words.membership.T
        ],
    }


def packed(shares: NDArray[np.floating]) -> str:
    """Shares between 0 and 1 as bytes in base64."""
    return b64encode((shares * FULL).round().astype(np.uint8).tobytes()).decode("ascii")


def unpacked(text: str) -> NDArray[np.float64]:
    """What `packed` wrote, without its shape."""
    return np.frombuffer(b64decode(text), np.uint8) / FULL


def encoder_on_words(sentence: Mapping[str, Any]) -> NDArray[np.float64]:
    """Encoder self-attention of a translated sentence of maps.json between its words [N, W, W], as of `on_words`.

    What goes to the end sign is left out.
    """
    member = np.zeros((len(sentence["words"]), len(sentence["subwords"])))
    for subword, shares in enumerate(sentence["membership"]):
        for word, share in shares:
            member[word, subword] = share
    read = len(sentence["subwords"]) + 1
    return on_words(unpacked(sentence["weights"]["enc_self"]).reshape(-1, read, read)[:, :-1, :-1], member)

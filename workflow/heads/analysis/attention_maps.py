"""Attention maps for display: a few sentences, the model's output, and the weights of all its heads. No torch.

A classifier reads examples of one or two sentences and predicts a label instead of a translation.

Each weight is a byte, 255 for 1; the bytes of each kind of attention are in base64, so that a page can hold many.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heads.base.scripts import is_unspaced
from heads.config.analyses import MapsSettings
from heads.syntax.words import Arc, Words, on_words
from heads.text.special_ids import BOS, EOS
from heads.text.vocabulary import Vocabulary
from heads.text.wordpieces import BLANK

FULL = 255
SIGNS = {BOS: "\u27e8start\u27e9", EOS: "\u27e8separator\u27e9"}
"""How maps show the start of an example and the separator after each of its sentences."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A sentence, its translation by a model, and the attention weights of the model's heads for the two.

    target: ids of the translation's subwords, without BOS and EOS. weights: by kind of attention [N, Q, K], heads in
    the order of `ModelShape.heads`. The source ends with EOS. In the decoder, a row is a subword being written, EOS at
    last; on its own side it can look at BOS and all previous subwords.
    """

    words: Words
    target: list[int]
    weights: Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Classified:
    """An example, the index of its predicted label, and the attention weights of the model's heads.

    words: from `framed`. weights: [N, P, P], heads in the order of `ModelShape.heads`, special tokens among the P
    subwords.
    """

    words: Words
    label: int
    weights: NDArray[np.float32]


def sentences_to_show(sentences: Iterable[Words], settings: MapsSettings) -> list[Words]:
    """The first sentences, up to `settings.sentences`, with between `min_words` and `max_words` words.

    In a script without blanks between words, where each letter is one, subwords are counted for the maximum.
    """
    fitting = (words for words in sentences if _fits([words], settings))
    return list(islice(fitting, settings.sentences))


def _fits(sentences: Sequence[Words], settings: MapsSettings) -> bool:
    unspaced = is_unspaced("".join(form for words in sentences for form in words.forms))
    most = sum(len(words.subwords) if unspaced else len(words) for words in sentences)
    return settings.min_words <= sum(map(len, sentences)) and most <= settings.max_words


def examples_to_show(examples: Iterable[Sequence[Words]], settings: MapsSettings) -> list[Words]:
    """The same for examples, by the words of all their sentences; each as the model reads it, see `framed`."""
    fitting = (framed(number, sentences) for number, sentences in enumerate(examples) if _fits(sentences, settings))
    return list(islice(fitting, settings.sentences))


def framed(number: int, sentences: Sequence[Words]) -> Words:
    """The sentences of an example joined into one, with the special tokens that the model reads.

    A special token is a word of one subword, without arcs.
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
    """The attention maps of each translated sentence, in the order of the file, as in maps.json.

    words, relations, tree_heads: of surface words (see `heads.syntax.words`), each with its first relation to a
    head; tree_heads are 1-based, and 0 at the root and everywhere without a tree. subwords: the source as the model
    reads it, without EOS; membership: for each subword, the words that it is part of, with its share in each.
    translation, target_subwords: the model's output. weights: base64 of bytes [N, Q, K] as in `Translated`.
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
    """The attention maps of each classified example, in the order of the file, as in a classifier's maps.json.

    As in `maps`, but with special tokens among words and subwords, and instead of a translation with `wanted`, the
    label in the corpus, and `label`, the model's prediction. Each sentence has its own arcs, and none without trees.
    weights: of enc_self, bytes [N, P, P]. labels: all labels of the model, in its order. wanted: the label of each line
    of the file.
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
    """The model's input as in maps.json: words, their tree and their subwords."""
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
    """The shares that `packed` encoded, as a flat array."""
    return np.frombuffer(b64decode(text), np.uint8) / FULL


def encoder_on_words(sentence: Mapping[str, Any]) -> NDArray[np.float64]:
    """Encoder self-attention between the words [N, W, W] of a translated sentence of maps.json, see `on_words`.

    Attention from and to EOS is left out.
    """
    member = np.zeros((len(sentence["words"]), len(sentence["subwords"])))
    for subword, shares in enumerate(sentence["membership"]):
        for word, share in shares:
            member[word, subword] = share
    read = len(sentence["subwords"]) + 1
    return on_words(unpacked(sentence["weights"]["enc_self"]).reshape(-1, read, read)[:, :-1, :-1], member)

"""A synchronous grammar of English and Russian: endless sentence pairs with gold trees and word alignments.

It has real words, full Russian inflection and Zipfian choice with a long tail of names. It gives the heads of a small
Transformer work whose right answer is known: agreement, case, reordering, words that depend on their neighbours. The
Russian and the tree are functions of the English sentence. Length: 4 to 30 words, not counting punctuation.
`words` says which words are aligned.
"""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from heads.corpus.distinct import SeenBefore
from heads.corpus.grammar.sentences import Sentences
from heads.corpus.grammar.words import Links, in_order, links_of, surface, tree, without_signs
from heads.syntax.conllu import Sentence

SHORTEST, LONGEST = 4, 30
CAPACITY = 10_000_000
NO_TREE = Sentence(())
DEV_PERCENT, TEST_PERCENT = 3, 3


@dataclass(frozen=True, slots=True)
class Pair:
    """English `source`, Russian `target`; gold `tree` of the source and `links` of words, empty if not asked for."""

    source: str
    target: str
    tree: Sentence
    links: Links


def stream(seed: int, *, with_trees: bool = True) -> Iterator[Pair]:
    """Endless pairs, no English sentence twice, the same for the same seed, in constant memory (24 MB).

    A Bloom filter for ten million items keeps them distinct; it wrongly drops one new sentence in ten thousand. Far
    beyond that number it drops more, and the stream slows. `with_trees` only affects `tree` and `links` of the pairs.
    """
    sentences = Sentences(random.Random(seed).random)
    seen = SeenBefore(CAPACITY, 0.0001)
    while True:
        root, russian = sentences.sentence()
        words = in_order(root)
        if not SHORTEST <= sum(word.upos != "PUNCT" for word in words) <= LONGEST:
            continue
        source = surface(words)
        if seen.add(source):
            gold = (tree(words), links_of(words, russian)) if with_trees else (NO_TREE, ())
            yield Pair(source, without_signs(russian), *gold)


def first_of_split(seed: int, split: str, count: int, *, with_trees: bool = False) -> Iterator[Pair]:
    """The first `count` pairs of a split, the same at every call."""
    return islice((pair for pair in stream(seed, with_trees=with_trees) if split_of(pair.target) == split), count)


def split_of(sentence: str) -> str:
    """ "train", "dev" or "test" (94, 3 and 3 percent) by a hash of the sentence, so that splits never overlap.

    Applied to the Russian sentence it separates both sides, since the English one determines it. English sentences
    that differ only in "a" and "the" share their Russian sentence and so their split.
    """
    digest = hashlib.blake2b(sentence.encode("utf-8"), digest_size=8, person=b"split").digest()
    percent = int.from_bytes(digest, "little") % 100
    if percent < DEV_PERCENT:
        return "dev"
    return "test" if percent < DEV_PERCENT + TEST_PERCENT else "train"

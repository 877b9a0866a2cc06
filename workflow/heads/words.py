"""Trees as attention can see them: surface words, the arcs between them, and their pieces.

The model reads pieces, the trees speak of words. Attention to a word is the sum over its pieces, attention
from a word the mean over them, each piece counting by the share of it that lies in the word. Blanks belong to
the word that follows. The paper does not say how it went from pieces to words, so this is our choice.

The words of one multiword token ("do" and "n't" of "don't") have no characters of their own and can not be
told apart by attention: they are one surface word here, and the arcs among them are left out.

N heads, W surface words, P pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heads.bpe import Vocabulary, membership
from heads.corpus.conllu import Sentence


@dataclass(frozen=True, slots=True)
class Arc:
    """A dependency between two surface words, 0-based, with its full UD v2 relation."""

    dependent: int
    head: int
    relation: str


@dataclass(frozen=True, slots=True)
class Words:
    """A parsed sentence in surface words, and the pieces that the model reads."""

    number: int
    """Which sentence of its file, 0-based."""
    forms: tuple[str, ...]
    arcs: tuple[Arc, ...]
    pieces: NDArray[np.int32]
    """[P] ids, without end sign."""
    membership: NDArray[np.float64]
    """[W, P], which share of a piece lies in which word."""

    def __len__(self) -> int:
        """Number of surface words."""
        return len(self.forms)


Attended = tuple[Words, NDArray[np.float32]]
"""A sentence with the attention weights [N, P, P] between its pieces, the end sign already dropped."""


def words_of(trees: Iterable[Sentence], vocabulary: Vocabulary) -> Iterator[Words]:
    """Every tree in surface words and in pieces of its own text."""
    for number, tree in enumerate(trees):
        text, surface = tree.text, [(token.start, token.end) for token in tree.tokens]
        spans = sorted(set(surface))
        place = {span: index for index, span in enumerate(spans)}
        arcs = tuple(
            Arc(place[own], place[surface[token.head - 1]], token.relation)
            for token, own in zip(tree.tokens, surface, strict=True)
            if token.head and surface[token.head - 1] != own
        )
        ids, pieces = vocabulary.spans(text)
        ends = [end for _, end in spans]
        # The blank that SentencePiece puts before a text covers no character: give it the first one.
        covered = [(start, max(end, start + 1)) for start, end in pieces]
        member = membership(covered, list(zip([0, *ends[:-1]], ends, strict=True)))
        forms = tuple(text[start:end] for start, end in spans)
        yield Words(number, forms, arcs, np.array(ids, np.int32), member)


def on_words(weights: NDArray[np.floating], member: NDArray[np.float64]) -> NDArray[np.float64]:
    """Attention between pieces [N, P, P] as attention between words [N, W, W]; `member` is [W, P].

    Rows sum to at most one: what went to the end sign is missing and is not shared out again.
    """
    pieces_in_word = member.sum(1, keepdims=True)
    mean = np.divide(member, pieces_in_word, out=np.zeros_like(member), where=pieces_in_word > 0)
    return np.asarray(mean @ weights @ member.T)

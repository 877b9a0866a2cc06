"""Dependency trees as attention can see them: surface words, the arcs between them, and their subwords.

The model reads subwords; the trees are over words. Attention to a word is the sum over its subwords, attention
from a word the mean over them, each subword weighted by the share of it that lies in the word. Blanks belong to
the following word. The paper does not say how it went from subwords to words, so this is our choice.

The words of one multiword token ("do" and "n't" of "don't") have no characters of their own, and attention cannot
distinguish them: here they are one surface word, and the arcs between them are left out and counted.

Subwords are found by character offset. The project's vocabularies do not normalise, so the subwords of any text cover
each of its characters once: words attached to punctuation, characters that the vocabulary does not know, combining
marks, blanks of every kind. A vocabulary that normalises might not; such words are counted, never guessed.

N heads, W surface words, P subwords.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heads.base.columns import COVERAGE_COLUMNS
from heads.syntax.conllu import Sentence
from heads.text.special_ids import UNK
from heads.text.vocabulary import Span, Vocabulary, membership

SHORTEST = 2
"""Minimum number of words: in a sentence of one word, every head points at that word."""


@dataclass(frozen=True, slots=True)
class Arc:
    """A dependency between two surface words, 0-based, with its full UD v2 relation."""

    dependent: int
    head: int
    relation: str


@dataclass(frozen=True, slots=True)
class Words:
    """A parsed sentence in surface words, and the subwords that the model reads."""

    number: int
    """Index of the sentence in its file, 0-based."""
    forms: tuple[str, ...]
    arcs: tuple[Arc, ...]
    subwords: NDArray[np.int32]
    """[P] ids, without EOS."""
    membership: NDArray[np.float64]
    """[W, P], the share of each subword that lies in each word."""
    covered: int = 0
    """Number of words whose characters each lie in exactly one subword."""
    inner_arcs: int = 0
    """Number of arcs inside multiword tokens, which are left out."""
    unknown: int = 0
    """Number of subwords for characters that the vocabulary does not know."""

    def __len__(self) -> int:
        """Number of surface words."""
        return len(self.forms)


SentenceAttention = tuple[Words, NDArray[np.float32]]
"""A sentence with the attention weights [N, P, P] between its subwords, with EOS already dropped."""


def words_of(trees: Iterable[Sentence], vocabulary: Vocabulary) -> Iterator[Words]:
    """Each tree in surface words, with the subwords of its text."""
    for number, tree in enumerate(trees):
        text, surface = tree.text, [(token.start, token.end) for token in tree.tokens]
        spans = sorted(set(surface))
        place = {span: index for index, span in enumerate(spans)}
        dependents = [(token, own) for token, own in zip(tree.tokens, surface, strict=True) if token.head]
        arcs = tuple(
            Arc(place[own], place[surface[token.head - 1]], token.relation)
            for token, own in dependents
            if surface[token.head - 1] != own
        )
        ids, subwords = vocabulary.spans(text)
        ends = [end for _, end in spans]
        # The blank that SentencePiece puts before a text covers no character: let it cover the first one.
        covered = [(start, max(end, start + 1)) for start, end in subwords]
        yield Words(
            number,
            tuple(text[start:end] for start, end in spans),
            arcs,
            np.array(ids, np.int32),
            membership(covered, list(zip([0, *ends][:-1], ends, strict=True))),
            covered_words(spans, subwords, len(text)),
            len(dependents) - len(arcs),
            ids.count(UNK),
        )


def covered_words(words: Sequence[Span], subwords: Sequence[Span], characters: int) -> int:
    """Number of words whose characters each lie in exactly one subword, in a text of `characters` characters."""
    times = np.zeros(characters, np.int64)
    for start, end in subwords:
        times[start:end] += 1
    return sum(end > start and bool((times[start:end] == 1).all()) for start, end in words)


def usable(sentences: Iterable[Words], max_subwords: int) -> tuple[list[Words], dict[str, int | float | None]]:
    """The sentences on which heads are measured, and counts for all sentences as a row of COVERAGE_COLUMNS.

    Sentences with fewer than SHORTEST words (`too_short`), with more than `max_subwords` subwords (`too_long`) or with
    a word that subwords do not cover exactly (`not_aligned`) are left out, each for the first of these reasons. The
    other columns count over all sentences.
    """
    kept: list[Words] = []
    tally: Counter[str] = Counter()
    for words in sentences:
        fate = _fate(words, max_subwords)
        if fate == "measured":
            kept.append(words)
        tally.update(["sentences", fate])
        counts = {"tree_words": len(words), "aligned_words": words.covered, "subwords": len(words.subwords)}
        counts |= {"unknown_subwords": words.unknown, "arcs_inside_words": words.inner_arcs}
        tally.update({**counts, "arcs": len(words.arcs) + words.inner_arcs})
    row: dict[str, int | float | None] = {column: tally[column] for column in COVERAGE_COLUMNS}
    row["aligned_share"] = tally["aligned_words"] / tally["tree_words"] if tally["tree_words"] else None
    return kept, row


def usable_pairs(pairs: Iterable[tuple[Words, Words]], max_subwords: int) -> list[int]:
    """The numbers of the pairs whose sides can both be measured; a target may have a single word."""
    return [
        number
        for number, (source, target) in enumerate(pairs)
        if _fate(source, max_subwords) == "measured" and _fate(target, max_subwords) in ("measured", "too_short")
    ]


def _fate(words: Words, max_subwords: int) -> str:
    if len(words) < SHORTEST:
        return "too_short"
    if len(words.subwords) > max_subwords:
        return "too_long"
    return "measured" if words.covered == len(words) else "not_aligned"


def on_words(
    weights: NDArray[np.floating], member: NDArray[np.float64], read: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Convert attention between subwords [N, P, Q] to attention between words [N, W, V].

    member, read: membership [W, P] of the words that attend and [V, Q] of those attended to, by default the same words.
    Rows sum to at most one: attention to EOS is missing and is not redistributed.
    """
    subwords_in_word = member.sum(1, keepdims=True)
    mean = np.divide(member, subwords_in_word, out=np.zeros_like(member), where=subwords_in_word > 0)
    return np.asarray(mean @ weights @ (member if read is None else read).T)

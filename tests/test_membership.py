"""From words to pieces and from attention on pieces to attention on words."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heads.bpe import Span, Vocabulary, membership
from heads.corpus.conllu import Sentence, place, read_conllu
from heads.words import Arc, Words, on_words, words_of

MULTIWORD = """\
1\tWe\twe\tPRON\t_\t_\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\t_\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\t_\t_\t2\tadvmod\t_\t_
4\tswim\tswim\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t_\t_\t4\tpunct\t_\t_
"""


class Cut(Vocabulary):
    """A vocabulary whose pieces end at given characters; the first is SentencePiece's blank before the text."""

    def __init__(self, ends: list[int]) -> None:
        self.ends = [0, *ends]

    def spans(self, sentence: str) -> tuple[list[int], list[Span]]:
        assert self.ends[-1] == len(sentence)
        return list(range(7, 7 + len(self.ends))), list(zip([0, *self.ends[:-1]], self.ends, strict=True))


def one(sentence: Sentence, ends: list[int]) -> Words:
    return next(words_of([sentence], Cut(ends)))


@st.composite
def spans(draw: st.DrawFn) -> tuple[list[Span], list[Span]]:
    """Pieces that cover a text without gaps, and words with gaps between them."""
    length = draw(st.integers(1, 30))
    inner = st.sets(st.integers(0, length))
    edges = sorted(draw(inner) | {0, length})
    borders = sorted(draw(inner))
    words = list(zip(borders[::2], borders[1::2], strict=False))
    return list(pairwise(edges)), words


@settings(max_examples=60, deadline=None)
@given(spans())
def test_a_piece_is_shared_out_whole_or_not_at_all(case: tuple[list[Span], list[Span]]) -> None:
    pieces, words = case
    shares = membership(pieces, words)
    assert shares.shape == (len(words), len(pieces))
    for column, (start, end) in zip(shares.T, pieces, strict=True):
        touched = any(start < word_end and word_start < end for word_start, word_end in words)
        assert column.sum() == pytest.approx(1 if touched else 0)


@settings(max_examples=60, deadline=None)
@given(spans(), st.integers(0, 1000))
def test_attention_to_words_sums_to_attention_to_the_pieces_they_cover(
    case: tuple[list[Span], list[Span]], seed: int
) -> None:
    pieces, words = case
    shares = membership(pieces, words)
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(pieces) + 1), (2, len(pieces)))[..., :-1]
    on = on_words(weights, shares)
    to_covered = weights[:, :, shares.sum(0) > 0].sum(-1)
    for word, row in enumerate(shares):
        assert on[:, word].sum(-1) == pytest.approx(np.average(to_covered, axis=1, weights=row))


def test_to_a_word_is_the_sum_and_from_a_word_the_mean_over_its_pieces() -> None:
    shares = membership([(0, 2), (2, 5), (6, 9)], [(0, 5), (6, 9)])
    weights = np.array([[[0.1, 0.2, 0.7], [0.5, 0.1, 0.4], [0.3, 0.3, 0.2]]])
    np.testing.assert_allclose(on_words(weights, shares), [[[0.45, 0.55], [0.6, 0.2]]])


def test_a_piece_across_two_words_counts_by_its_characters_in_each() -> None:
    shares = membership([(0, 3), (3, 7)], [(0, 4), (4, 7)])
    np.testing.assert_allclose(shares, [[1, 0.25], [0, 0.75]])
    weights = np.array([[[0.2, 0.8], [0.6, 0.4]]])
    to_first = [0.2 + 0.8 / 4, 0.6 + 0.4 / 4]
    from_first = (to_first[0] + to_first[1] / 4) / 1.25
    assert on_words(weights, shares)[0, 0, 0] == pytest.approx(from_first)


def test_blanks_belong_to_the_word_that_follows_and_nothing_is_lost() -> None:
    sentence = place([("ab", "", "", 2, "amod", True), ("cde", "", "", 0, "root", False)])
    words = one(sentence, [2, 3, 5, 6])
    assert words.forms == ("ab", "cde")
    np.testing.assert_array_equal(words.membership, [[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]])
    assert words.pieces.tolist() == [7, 8, 9, 10, 11]


def test_a_multiword_token_is_one_word_without_the_arcs_inside_it(tmp_path: Path) -> None:
    (tmp_path / "trees.conllu").write_text(MULTIWORD, encoding="utf-8")
    words = one(next(read_conllu(tmp_path / "trees.conllu")), [2, 5, 8, 12, 14])
    assert words.forms == ("We", "don't", "swim", ".")
    assert words.arcs == (Arc(0, 2, "nsubj"), Arc(1, 2, "aux"), Arc(3, 2, "punct"))
    expected = [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 0.5], [0, 0, 0, 0, 0, 0.5]]
    assert words.membership.tolist() == expected

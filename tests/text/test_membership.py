"""From words to subwords and from attention on subwords to attention on words."""

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from heads.base.columns import COVERAGE_COLUMNS
from heads.config.trainings import BpeSettings
from heads.syntax.conllu import Sentence, Token, place, read_conllu
from heads.syntax.words import Arc, Words, covered_words, on_words, usable, words_of
from heads.text.stored import write_model
from heads.text.vocabulary import Span, Vocabulary, membership, train_bpe

MULTIWORD = """\
1\tWe\twe\tPRON\t_\t_\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\t_\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\t_\t_\t2\tadvmod\t_\t_
4\tswim\tswim\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t_\t_\t4\tpunct\t_\t_
"""


class Cut(Vocabulary):
    """A vocabulary whose subwords end at given characters; the first is SentencePiece's blank before the text."""

    def __init__(self, ends: list[int]) -> None:
        self.ends = [0, *ends]

    def spans(self, sentence: str) -> tuple[list[int], list[Span]]:
        assert self.ends[-1] == len(sentence)
        return list(range(7, 7 + len(self.ends))), list(zip([0, *self.ends[:-1]], self.ends, strict=True))


def one(sentence: Sentence, ends: list[int]) -> Words:
    return next(words_of([sentence], Cut(ends)))


@st.composite
def spans(draw: st.DrawFn) -> tuple[list[Span], list[Span]]:
    """Subwords that cover a text without gaps, and words with gaps between them."""
    length = draw(st.integers(1, 30))
    inner = st.sets(st.integers(0, length))
    edges = sorted(draw(inner) | {0, length})
    borders = sorted(draw(inner))
    words = list(zip(borders[::2], borders[1::2], strict=False))
    return list(pairwise(edges)), words


@settings(max_examples=60, deadline=None)
@given(spans())
def test_a_subword_is_shared_out_whole_or_not_at_all(case: tuple[list[Span], list[Span]]) -> None:
    subwords, words = case
    shares = membership(subwords, words)
    assert shares.shape == (len(words), len(subwords))
    for column, (start, end) in zip(shares.T, subwords, strict=True):
        touched = any(start < word_end and word_start < end for word_start, word_end in words)
        assert column.sum() == pytest.approx(1 if touched else 0)


@settings(max_examples=60, deadline=None)
@given(spans(), st.integers(0, 1000))
def test_attention_to_words_sums_to_attention_to_the_subwords_they_cover(
    case: tuple[list[Span], list[Span]], seed: int
) -> None:
    subwords, words = case
    shares = membership(subwords, words)
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(subwords) + 1), (2, len(subwords)))[..., :-1]
    on = on_words(weights, shares)
    to_covered = weights[:, :, shares.sum(0) > 0].sum(-1)
    for word, row in enumerate(shares):
        assert on[:, word].sum(-1) == pytest.approx(np.average(to_covered, axis=1, weights=row))


def test_to_a_word_is_the_sum_and_from_a_word_the_mean_over_its_subwords() -> None:
    shares = membership([(0, 2), (2, 5), (6, 9)], [(0, 5), (6, 9)])
    weights = np.array([[[0.1, 0.2, 0.7], [0.5, 0.1, 0.4], [0.3, 0.3, 0.2]]])
    np.testing.assert_allclose(on_words(weights, shares), [[[0.45, 0.55], [0.6, 0.2]]])


def test_a_subword_across_two_words_counts_by_its_characters_in_each() -> None:
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
    assert words.subwords.tolist() == [7, 8, 9, 10, 11]


def test_a_multiword_token_is_one_word_without_the_arcs_inside_it(tmp_path: Path) -> None:
    (tmp_path / "trees.conllu").write_text(MULTIWORD, encoding="utf-8")
    words = one(next(read_conllu(tmp_path / "trees.conllu")), [2, 5, 8, 12, 14])
    assert words.forms == ("We", "don't", "swim", ".")
    assert words.arcs == (Arc(0, 2, "nsubj"), Arc(1, 2, "aux"), Arc(3, 2, "punct"))
    expected = [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 0.5], [0, 0, 0, 0, 0, 0.5]]
    assert words.membership.tolist() == expected


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    """A real vocabulary, learnt from a little Latin and Cyrillic text."""
    folder = tmp_path_factory.mktemp("bpe")
    lines = ["the farmer's old tools, sold", "красивая кошка видит её!", "tools (old) weren't e\u0301 sold"] * 9
    (folder / "text").write_text("\n".join(lines), encoding="utf-8")
    train_bpe(folder / "text", folder / "model", BpeSettings(source_subwords=70, target_subwords=70), 70)
    return Vocabulary(folder / "model")


ODD = (
    "aeto тлё'\",.!?()-"  # known letters, and punctuation attached to words
    "\u0301\u0308\u20dd\ufe0f\u200b\u200c\u200d\u2060\ufeff\u00ad"  # combining, zero-width, soft hyphen
    "\u00a0\u1680\u2003\u2028\u202f\u3000\u2581"  # other kinds of blanks, and the character that stands for one
    "日本語ﬁﬀＡ①½Ⅷ\u1100\u1161각🧑\U0001f680\U000e0101\ue000\u0007"  # unknown, and what normalising would change
)
FORMS = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"])), min_size=1, max_size=8)
ROWS = st.lists(st.tuples(FORMS, st.booleans(), st.integers(1, 3)), min_size=1, max_size=9)


def star(rows: list[tuple[str, bool, int]]) -> Sentence:
    """Surface words, with or without a space after them, by number of syntactic words, all dependent on the first."""
    tokens: list[Token] = []
    start = 0
    for form, space, parts in rows:
        end = start + len(form)
        shared = form if parts > 1 else ""
        for _ in range(parts):
            tokens.append(Token(form, "", "", int(bool(tokens)), "dep", space, start, end, shared))
        start = end + space
    return Sentence(tuple(tokens))


@settings(max_examples=300, deadline=None)
@given(ROWS)
def test_every_word_of_any_text_is_aligned_with_the_subwords_of_its_characters(
    vocabulary: Vocabulary, rows: list[tuple[str, bool, int]]
) -> None:
    tree = star(rows)
    words = next(words_of([tree], vocabulary))
    assert words.forms == tuple(form for form, _, _ in rows)
    assert words.covered == len(words) == len(rows)
    ids, spans = vocabulary.spans(tree.text)
    assert "".join(tree.text[start:end] for start, end in spans) == tree.text
    # The slow way: each character goes to one word, a space to the next; a subword to the words of its characters.
    owner = [word for word, (form, _, _) in enumerate(rows) for _ in range((word and rows[word - 1][1]) + len(form))]
    expected = np.zeros((len(rows), len(ids)))
    for subword, (start, end) in enumerate(spans):
        for character in range(start, max(end, start + 1)):
            expected[owner[character], subword] += 1 / max(end - start, 1)
    np.testing.assert_allclose(words.membership, expected, atol=1e-12)
    assert words.inner_arcs + len(words.arcs) == len(tree) - 1
    assert words.inner_arcs == rows[0][2] - 1


def test_a_word_with_a_character_that_a_normalising_vocabulary_drops_is_counted_and_its_sentence_left_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "text").write_text("oft inn elf so tool\n" * 9, encoding="utf-8")
    options: dict[str, Any] = {"vocab_size": 14, "model_type": "bpe", "normalization_rule_name": "nmt_nfkc"}
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "text"), model_writer=trained, minloglevel=2, **options
    )
    write_model(tmp_path / "m.model", trained.getvalue())
    torn = place([("\u200binn", "", "", 0, "root", True), ("tools", "", "", 1, "obj", False)])
    whole = place([("inn", "", "", 0, "root", True), ("tools", "", "", 1, "obj", False)])
    kept, row = usable(words_of([torn, whole], Vocabulary(tmp_path / "m.model")), 99)
    assert [words.number for words in kept] == [1]
    expected = {"not_aligned": 1, "tree_words": 4, "aligned_words": 3, "aligned_share": 0.75}
    assert {column: row[column] for column in expected} == expected


def test_a_word_is_aligned_if_each_of_its_characters_lies_in_one_subword() -> None:
    words = [(0, 3), (4, 5), (5, 8), (9, 9)]
    assert covered_words(words, [(0, 0), (0, 4), (4, 6), (6, 8)], 9) == 3
    assert covered_words(words, [(0, 2), (4, 6), (6, 8)], 9) == 2
    assert covered_words(words, [(0, 4), (3, 6), (5, 8)], 9) == 2


def test_every_sentence_is_measured_or_counted_for_one_reason(vocabulary: Vocabulary) -> None:
    lone, long = [("old", True, 1)], [("日", True, 1)] * 9
    rows = [[("the", True, 2), ("tools", True, 1)], lone, long, [("it", False, 1), ("'s", True, 1)]]
    kept, row = usable(words_of(map(star, rows), vocabulary), 12)
    assert [words.number for words in kept] == [0, 3]
    counts = (4, 2, 1, 1, 0, 14, 14, 1.0, row["subwords"], row["unknown_subwords"], 11, 1)
    assert row == dict(zip(COVERAGE_COLUMNS, counts, strict=True))
    assert int(str(row["unknown_subwords"])) >= 9
    assert usable([], 9)[1]["aligned_share"] is None

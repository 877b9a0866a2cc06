"""The gold word alignment of the grammar: sentences aligned by hand, words without a link, and unchanged text."""

from __future__ import annotations

import hashlib
import itertools
from functools import cache

import pytest

from heads.corpus.grammar import Pair, split_of, stream
from heads.corpus.grammar.lexicon import load
from heads.corpus.grammar.phrases import Phrases
from heads.corpus.grammar.russian import ACC
from heads.corpus.grammar.words import Node, leaf, links_of, stands_for, without_signs
from heads.syntax.tokenising import words_of_text

# The words of each link, written by hand
KNOWN = {
    "He asked the old friend whom angry soldiers envied.": (
        "He-Он asked-спросил old-старого friend-друга whom-которому angry-сердитые soldiers-солдаты "
        "envied-завидовали .-."
    ),
    "The child's kings made old flutes.": "child-ребёнка kings-Короли made-сделали old-старые flutes-флейты .-.",
    "Then a car died in an ancient stone house.": (
        "Then-Потом car-машина died-заглохла in-в ancient-древнем stone-каменном house-доме .-."
    ),
    "We gave the short man the white forest duck and some boring short letters quietly.": (
        "We-Мы gave-дали short-невысокому man-мужчине white-белую forest-лесную duck-утку and-и some-некоторые "
        "boring-скучные short-короткие letters-письма quietly-тихо .-."
    ),
    "Then Tovona knew that Trirvush did not write a strange new message, but the hungry tall sailor said that the "
    "teacher laughed.": (
        "Then-Потом Tovona-Товона knew-знала that-что Trirvush-Трирвуш did-написал not-не write-написал "
        "strange-странное new-новое message-сообщение ,-, but-но hungry-голодный tall-высокий sailor-моряк "
        "said-сказал that-что teacher-учитель laughed-засмеялся .-."
    ),
}
FIRST_PAIRS = {
    1: "e4c95aee1d2342816061b7fc02318fc369d0d975c755875b3891d5a625037f9a",
    7: "785c5427b53596577552f8c27af3267a52e5c4fe8f010a219c3cb0511a8fd615",
}
"""SHA-256 of the first 5,000 pairs of a seed, as written before the grammar gave alignments."""


@cache
def sample(seed: int, count: int) -> tuple[Pair, ...]:
    """The first pairs of a stream."""
    return tuple(itertools.islice(stream(seed), count))


def words_of(text: str) -> list[str]:
    """The words of a text, without punctuation."""
    return [token.form for token in words_of_text(text)]


def linked(pair: Pair) -> list[str]:
    """The two words of each link."""
    source, target = words_of(pair.source), words_of(pair.target)
    return [f"{source[i]}-{target[j]}" for i, j in pair.links]


@pytest.mark.parametrize("seed", FIRST_PAIRS)
def test_the_text_is_byte_for_byte_what_it_was_before_there_were_links(seed: int) -> None:
    digest = hashlib.sha256()
    for pair in itertools.islice(stream(seed, with_trees=False), 5000):
        digest.update(f"{pair.source}\t{pair.target}\n".encode())
    assert digest.hexdigest() == FIRST_PAIRS[seed]


def test_known_sentences_are_aligned_as_by_hand() -> None:
    found = {pair.source: linked(pair) for pair in sample(3, 400) if pair.source in KNOWN}
    assert found == {source: links.split() for source, links in KNOWN.items()}


def test_words_of_the_links_are_those_of_the_tokeniser_and_of_the_tree() -> None:
    for pair in sample(3, 2000):
        assert words_of(pair.source) == [token.form for token in pair.tree]
        assert all(0 <= i < len(pair.tree) and 0 <= j < len(words_of(pair.target)) for i, j in pair.links)
        assert list(pair.links) == sorted(set(pair.links))


def test_only_words_that_the_other_language_says_by_grammar_have_no_link() -> None:
    alone: set[str] = set()
    also_alone: set[str] = set()
    for pair in sample(3, 4000):
        sources, targets = ({link[side] for link in pair.links} for side in (0, 1))
        alone |= {f"{t.form.lower()} {t.upos}" for i, t in enumerate(pair.tree) if i not in sources}
        also_alone |= {form.lower() for j, form in enumerate(words_of(pair.target)) if j not in targets}
    grammar = {"a DET", "an DET", "the DET", "'s PART", "to PART", "there PRON"}
    assert alone == grammar | {f"{word} ADP" for word in ("of", "to", "with", "for", "in")}
    assert also_alone == {",", "у", "на", "в", "за", "к", "по"}


def test_several_words_are_linked_with_one_only_where_it_takes_several_to_say_it() -> None:
    of_one_russian: set[tuple[str, ...]] = set()
    of_one_english: set[str] = set()
    for pair in sample(3, 4000):
        for j in {j for _, j in pair.links}:
            english = [pair.tree.tokens[i] for i, target in pair.links if target == j]
            if len(english) > 1:
                of_one_russian.add(tuple(word.upos for word in english))
        for i in {i for i, _ in pair.links}:
            if sum(source == i for source, _ in pair.links) > 1:
                of_one_english.add(pair.tree.tokens[i].form.lower())
    assert of_one_russian == {("AUX", "VERB"), ("AUX", "ADJ")}
    assert of_one_english == {"because", "never", "needed"}


def test_names_are_linked_with_their_own_russian_spelling() -> None:
    seen = 0
    for pair in sample(3, 2000):
        target = words_of(pair.target)
        for i, token in enumerate(pair.tree):
            if token.upos == "PROPN":
                (j,) = (j for source, j in pair.links if source == i)
                seen += 1
                assert target[j][0].isupper()
    assert seen > 300


def test_a_moved_clause_takes_its_links_along() -> None:
    """A "when" clause changes sides: the link of "When" crosses those of the main clause."""
    fronted = [pair for pair in sample(3, 4000) if pair.source.startswith("When ")]
    assert len(fronted) > 10
    for pair in fronted:
        when = next(j for i, j in pair.links if i == 0)
        assert words_of(pair.target)[when] == "когда"
        assert when > min(j for i, j in pair.links if i > 0)


def test_a_preposition_is_linked_with_that_of_its_own_phrase() -> None:
    met = 0
    for pair in sample(3, 3000):
        target = words_of(pair.target)
        for i, j in pair.links:
            token = pair.tree.tokens[i]
            if token.upos == "ADP":
                met += 1
                noun = token.head - 1
                assert any(source == noun and where > j for source, where in pair.links), (pair, target[j])
    assert met > 1000


def test_the_links_of_a_split_are_those_of_its_own_sentences() -> None:
    assert {split_of(pair.target) for pair in sample(3, 2000)} == {"train", "dev", "test"}
    assert {len(pair.links) for pair in itertools.islice(stream(3, with_trees=False), 50)} == {0}


def test_signs_stand_behind_every_russian_word_and_are_taken_off_whole() -> None:
    one, two = leaf("because", "SCONJ", "mark"), leaf("they", "PRON", "nsubj")
    signed = f"{stands_for('Потому что', one)} {stands_for('они', two)}."
    assert without_signs(signed) == "Потому что они."
    assert links_of([two, one], signed) == ((0, 2), (1, 0), (1, 1))


def test_a_preposition_without_an_english_one_has_no_link() -> None:
    phrases = Phrases(load(), lambda: 0.999)
    phrase = phrases.counted(
        next(n for n in load().nouns if n.singular == "bus"), ACC, "на", 0, many=False, article_of="any"
    )
    words: list[Node] = [*phrase.node.before, phrase.node]
    assert [j for _, j in links_of(words, phrase.russian)][-1] == len(phrase.russian.split()) - 1
    assert 0 not in {j for _, j in links_of(words, phrase.russian)}
    phrase.node.before.insert(0, leaf("on", "ADP", "case"))
    assert (0, 0) in links_of([*phrase.node.before, phrase.node], phrase.russian)

"""Premises and hypotheses of the grammar: labels held against their trees, and that one sentence gives nothing away."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml

from heads.base.files import UserError, read_lines
from heads.base.names import SPLITS
from heads.cli import corpus as corpus_command
from heads.cli import trees as trees_command
from heads.config.corpora import has_gold
from heads.corpus.grammar.contrasts import CONTRASTS, Draws
from heads.corpus.grammar.inference import LABELS, SCENES, Inference, square_of, squares
from heads.corpus.grammar.lexicon import load
from heads.corpus.grammar.stages import Unsuitable
from heads.syntax.conllu import Sentence, read_conllu

Square = tuple[Inference, ...]


def of_kind(kind: int, count: int, seed: int = 3) -> list[Square]:
    """So many squares of one kind of scene."""
    draws, found = Draws(load(), random.Random(seed).random), list[Square]()
    while len(found) < count:
        try:
            square = square_of(SCENES[kind][1](draws), with_trees=True)
        except Unsuitable:
            continue
        found += [square] if square else []
    return found


PLACES = ("in", "at", "on", "near", "behind", "opposite")


@dataclass(frozen=True)
class Event:
    """What a clause says: who does what to whom, how and where, and whether it is denied."""

    subject: str
    verb: str
    objects: frozenset[str]
    adjuncts: frozenset[tuple[str, ...]]
    denied: bool


class Reading:
    """What a sentence says for certain, read off its tree: events, qualities and numbers."""

    def __init__(self, sentence: Sentence) -> None:
        self.words = sentence.tokens
        self.events: list[Event] = []
        self.qualities: dict[tuple[str, str], bool] = {}
        self.numbers: dict[str, str] = {}
        for number, word in enumerate(self.words, 1):
            if word.relation == "amod":
                self.qualities[self.lemma(word.head), word.lemma] = True
            elif word.relation == "nummod":
                self.numbers[self.lemma(word.head)] = word.lemma
            elif self.is_clause(number) and not self.is_open(number):
                self.read_clause(number)

    def lemma(self, number: int) -> str:
        return self.words[number - 1].lemma

    def children(self, number: int, *relations: str) -> list[int]:
        return [n for n, word in enumerate(self.words, 1) if word.head == number and word.relation in relations]

    def is_clause(self, number: int) -> bool:
        return bool(self.children(number, "nsubj", "nsubj:pass"))

    def is_open(self, number: int) -> bool:
        """Whether it is only wished or reported."""
        word = self.words[number - 1]
        return word.relation in ("xcomp", "ccomp")

    def row(self, number: int) -> frozenset[str]:
        return frozenset(map(self.lemma, [number, *self.children(number, "conj")]))

    def subject(self, number: int, relation: str) -> str:
        found = self.children(number, relation)[0]
        word = self.words[number - 1]
        return self.lemma(word.head if word.relation == "acl:relcl" else found)

    def read_clause(self, number: int) -> None:
        denied = "not" in map(self.lemma, self.children(number, "advmod"))
        passive = self.children(number, "nsubj:pass")
        subject = self.subject(number, "nsubj:pass" if passive else "nsubj")
        objects, adjuncts = frozenset[str](), set[tuple[str, ...]]()
        for child in self.children(number, "obj", "obl", "advmod"):
            prepositions = tuple(map(self.lemma, self.children(child, "case")))
            if prepositions == ("by",) and passive:
                objects, subject = frozenset([subject]), self.lemma(child)
            elif self.words[child - 1].relation == "advmod":
                adjuncts |= {(self.lemma(child),)} - {("not",)}
            elif prepositions and prepositions[0] in PLACES:
                adjuncts.add((*prepositions, self.lemma(child)))
            else:
                objects = self.row(child)
        if self.children(number, "cop") and not objects:
            self.qualities[subject, self.lemma(number)] = not denied
        else:
            self.events.append(Event(subject, self.lemma(number), objects, frozenset(adjuncts), denied))


def flipped(verdict: str, *, denied: bool) -> str:
    yes, no, open_ = LABELS
    return {yes: no, no: yes, open_: open_}[verdict] if denied else verdict


def verdicts(premise: Reading, hypothesis: Reading) -> Iterator[str]:
    """What the premise says of everything that the hypothesis says."""
    yes, no, open_ = LABELS
    for (noun, quality), told in hypothesis.qualities.items():
        others = [b if a == quality else a for a, b in CONTRASTS if quality in (a, b)]
        excluded = any(premise.qualities.get((noun, other)) for other in others)
        found = yes if premise.qualities.get((noun, quality)) else no if excluded else open_
        yield flipped(found, denied=not told)
    for noun, count in hypothesis.numbers.items():
        known = premise.numbers.get(noun)
        yield open_ if known is None else yes if known == count else no
    for event in hypothesis.events:
        yield flipped(of_event(premise, event), denied=event.denied)


def of_event(premise: Reading, event: Event) -> str:
    yes, no, open_ = LABELS
    for known in premise.events:
        if (known.subject, known.verb) == (event.subject, event.verb) and event.objects <= known.objects:
            if known.denied:
                return no
            return yes if event.adjuncts <= known.adjuncts else no if known.adjuncts else open_
        if known.verb == event.verb and {event.subject} == known.objects and {known.subject} == event.objects:
            return no
    return open_


def verdict(pair: Inference) -> str:
    assert pair.premise.tree is not None and pair.hypothesis.tree is not None
    found = [*verdicts(Reading(pair.premise.tree), Reading(pair.hypothesis.tree))]
    _, no, open_ = LABELS
    return no if no in found else open_ if open_ in found else found[0]


@pytest.mark.parametrize("kind", range(len(SCENES)))
def test_labels_follow_from_what_the_trees_of_both_sentences_say(kind: int) -> None:
    for pair in chain.from_iterable(of_kind(kind, 60)):
        assert verdict(pair) == pair.label, (pair.premise.text, pair.hypothesis.text, pair.label)


def test_nothing_stands_behind_what_is_only_said_and_could_be_said_as_well() -> None:
    met = 0
    for pair in chain.from_iterable(of_kind(4, 60)):
        assert pair.premise.tree is not None
        relations = [word.relation for word in pair.premise.tree.tokens]
        if "ccomp" in relations:
            met += 1
            assert "conj" not in relations[relations.index("ccomp") :]
    assert met > 20


@pytest.mark.parametrize("kind", range(len(SCENES)))
def test_every_sentence_of_a_square_stands_once_under_each_label(kind: int) -> None:
    for square in of_kind(kind, 40):
        for side in ("premise", "hypothesis"):
            under = Counter((getattr(pair, side).text, pair.label) for pair in square)
            assert len(under) == 9 and len({text for text, _ in under}) == 3
        assert {pair.label for pair in square} == {*LABELS}


def test_where_words_are_shared_those_of_one_label_are_those_of_another() -> None:
    for square in of_kind(2, 30):
        bags = {tuple(sorted(pair.premise.text.replace(",", "").lower().split())) for pair in square}
        missing = {len({*words(pair.hypothesis.text)} - {*words(pair.premise.text)}) for pair in square}
        assert len({tuple(word.strip(".") for word in bag) for bag in map(sorted, bags)}) <= 3
        assert missing == {0}


def words(text: str) -> list[str]:
    return text.replace(",", " ,").replace(".", " .").lower().split()


Features = Callable[[Inference], Iterable[str]]


def hypothesis_alone(pair: Inference) -> Iterator[str]:
    found = words(pair.hypothesis.text)
    return chain(found, map(" ".join, pairwise(found)))


def premise_alone(pair: Inference) -> Iterator[str]:
    return iter(words(pair.premise.text))


def both(pair: Inference) -> Iterator[str]:
    """The words of both sentences, and how many of the hypothesis are missing in the premise."""
    first, second = words(pair.premise.text), words(pair.hypothesis.text)
    missing = [word for word in second if word not in first]
    return chain((f"p {word}" for word in first), (f"h {word}" for word in second), [f"missing {len(missing)}"])


def guessed(train: Sequence[Inference], test: Sequence[Inference], features: Features, rounds: int = 60) -> float:
    """Share of right guesses of a logistic regression over the features, trained by gradient descent with momentum."""
    counts = Counter(feature for pair in train for feature in {*features(pair)})
    index = {feature: number for number, (feature, count) in enumerate(counts.items()) if count > 1}

    def table(pairs: Sequence[Inference]) -> tuple[np.ndarray, np.ndarray]:
        rows = np.zeros((len(pairs), len(counts) + 1), np.float32)
        rows[:, -1] = 1.0
        for row, pair in zip(rows, pairs, strict=True):
            row[[index[feature] for feature in features(pair) if feature in index]] = 1.0
        return rows, np.array([LABELS.index(pair.label) for pair in pairs])

    x, y = table(train)
    weights = np.zeros((x.shape[1], 3), np.float32)
    speed = np.zeros_like(weights)
    for _ in range(rounds):
        scores = x @ weights
        chances = np.exp(scores - scores.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        chances[np.arange(len(y)), y] -= 1.0
        speed = 0.9 * speed - 0.5 * (x.T @ chances / len(y) + 1e-4 * weights)
        weights += speed
    tried, right = table(test)
    return float(((tried @ weights).argmax(1) == right).mean())


@pytest.fixture(scope="module")
def pairs() -> tuple[list[Inference], list[Inference]]:
    found = list(chain.from_iterable(islice(squares(1, with_trees=False), 400)))
    return found[:2700], found[2700:]


@pytest.mark.parametrize("alone", [hypothesis_alone, premise_alone])
def test_one_sentence_alone_gives_nothing_away(pairs: tuple[list[Inference], list[Inference]], alone: Features) -> None:
    assert abs(guessed(*pairs, alone) - 1 / 3) < 0.02


def test_the_guesser_finds_what_one_sentence_gives_away_where_it_does(
    pairs: tuple[list[Inference], list[Inference]],
) -> None:
    wanted = {(LABELS[0], False), (LABELS[1], True)}
    train, test = ([pair for pair in part if (pair.label, " not " in pair.hypothesis.text) in wanted] for part in pairs)
    assert guessed(train, test, hypothesis_alone) > 0.95


def test_no_word_or_pair_of_words_of_a_hypothesis_is_commoner_under_one_label() -> None:
    found = chain.from_iterable(islice(squares(2, with_trees=False), 300))
    under: dict[str, Counter[str]] = {label: Counter() for label in LABELS}
    for pair in found:
        under[pair.label].update(hypothesis_alone(pair))
        under[pair.label].update(f"premise {word}" for word in premise_alone(pair))
    assert under[LABELS[0]] == under[LABELS[1]] == under[LABELS[2]]


def test_the_words_of_both_sentences_help_but_do_not_solve_it(pairs: tuple[list[Inference], list[Inference]]) -> None:
    assert 0.5 < guessed(*pairs, both) < 0.9


def test_the_words_of_both_sentences_do_not_help_where_they_are_shared(
    pairs: tuple[list[Inference], list[Inference]],
) -> None:
    shared = [pair for kind in (0, 2, 4, 6, 8) for square in of_kind(kind, 20) for pair in square]
    assert abs(guessed(pairs[0], shared, both) - 1 / 3) < 0.03


def test_the_same_seed_writes_the_same_and_trees_change_nothing() -> None:
    def lines(seed: int, *, with_trees: bool) -> list[tuple[str, str]]:
        found = chain.from_iterable(islice(squares(seed, with_trees=with_trees), 30))
        return [(pair.text, pair.label) for pair in found]

    assert lines(5, with_trees=True) == lines(5, with_trees=False)
    assert lines(5, with_trees=False) != lines(6, with_trees=False)


def test_no_premise_comes_twice() -> None:
    met = [pair.premise.text for square in islice(squares(4, with_trees=False), 2000) for pair in square[::3]]
    assert len({*met}) == len(met) == 6000


COUNTS = {"train": 180, "dev": 18, "test": 20}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    settings = tmp_path / "entry.yaml"
    settings.write_text(yaml.safe_dump({"kind": "grammar_pairs", "source": "en", "seed": 3, "pairs": COUNTS}))
    out = tmp_path / "out"
    corpus_command.run(argparse.Namespace(settings=settings, downloads=tmp_path, out_folder=out, threads=1))
    return out


def write_trees(built: Path, split: str) -> list[Sentence]:
    out = built / f"{split}.conllu"
    trees_command.run(
        argparse.Namespace(corpus_settings=built.parent / "entry.yaml", split=split, downloads=built, out=out)
    )
    return [*read_conllu(out)]


def test_a_corpus_has_its_splits_apart_and_as_many_of_each_label(built: Path) -> None:
    premises = {}
    for split, count in COUNTS.items():
        lines, labels = (read_lines(built / f"{split}.{side}.txt") for side in ("source", "target"))
        assert len(lines) == len(labels) == len({*lines}) == count
        found = Counter(labels)
        assert {*found} == {*LABELS} and max(found.values()) - min(found.values()) <= 1
        premises[split] = {line.partition("\t")[0] for line in lines}
    assert not premises["train"] & premises["dev"] | premises["train"] & premises["test"]
    assert read_lines(built / "roles.source.txt") == []


@pytest.mark.parametrize("split", SPLITS)
def test_trees_stand_in_the_order_premise_hypothesis_premise_hypothesis(built: Path, split: str) -> None:
    lines = [line.split("\t") for line in read_lines(built / f"{split}.source.txt")]
    assert [tree.text for tree in write_trees(built, split)] == [*chain.from_iterable(lines)]


def test_trees_of_a_text_that_is_not_of_the_grammar_are_refused(built: Path) -> None:
    lines = read_lines(built / "dev.source.txt")
    (built / "dev.source.txt").write_text("\n".join([*lines[:6], "Not of it.\tNot.", *lines[7:]]) + "\n")
    with pytest.raises(UserError, match=r"dev\.source\.txt, line 7 does not come from this grammar"):
        write_trees(built, "dev")
    assert not (built / "dev.conllu").exists()


def test_the_grammar_of_pairs_has_gold_trees() -> None:
    assert has_gold({"kind": "grammar_pairs", "source": "en", "seed": 3, "pairs": COUNTS})

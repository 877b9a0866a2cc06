"""The grammar's premises and hypotheses: labels agree with meanings, and one sentence alone gives nothing away."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from heads.base.files import read_lines
from heads.base.names import SPLITS
from heads.config.corpus_entries import has_gold, parse_corpus
from heads.corpus.build import build
from heads.corpus.grammar.inference import LABELS, TEMPLATES, Inference, squares
from heads.corpus.grammar.lexicon import load
from heads.syntax.conllu import read_conllu
from tiny_corpora import write_trees

Square = tuple[Inference, ...]
Key = tuple[str, str]
Worlds = frozenset[str]

BASE = {verb.english: verb.base for verb in load().verbs}
BY_LESS = {"younger": "older", "shorter": "taller", "weaker": "stronger", "poorer": "richer"}
PLACES = ("attic", "school", "museum", "garden", "library", "kitchen", "factory")
COLOURS = ("grey", "red", "blue", "green", "white", "black", "yellow")
THINGS = {
    "bird": ("parrot", "crow"),
    "flower": ("lily", "rose"),
    "tool": ("saw", "hammer"),
    "toy": ("kite", "doll"),
    "vehicle": ("bus", "car"),
    "fish": ("cod", "trout"),
}
DEEDS = frozenset(
    {"nothing"}
    | {f"in the {place}" for place in PLACES}
    | {f"a {colour} hat" for colour in COLOURS}
    | {f"a {thing} {kind}" for kind, things in THINGS.items() for thing in things}
)
"""Things that somebody may have done, for one verb; a clause names a deed by some of its words."""


def meaning(clause: str) -> tuple[Key, Worlds, Worlds]:
    """The topic of a clause, all worlds that are possible for it, and those in which the clause is true."""
    if found := re.fullmatch(r"the (\w+) was (not )?(\w+) than the (\w+)", clause):
        first, denied, more, second = found.groups()
        leader = second if (more in BY_LESS) != bool(denied) else first
        pair = sorted([first, second])
        return (" ".join(pair), BY_LESS.get(more, more)), frozenset(pair), frozenset([leader])
    found = re.fullmatch(
        r"(the|all|no|some) (\w+?)(s?) (did not |wanted to )?(\w+)(?: (a|no|in the) ([\w ]+))?", clause
    )
    assert found, clause
    amount, who, many, how, verb, link, rest = found.groups()
    if many:
        worlds = frozenset(["all", "part", "none"])
        said = frozenset({"all": ["all"], "no": ["none"], "some": ["all", "part"], "the": ["all"]}[amount])
        if how == "did not ":
            said = {"some": frozenset(["part", "none"])}[amount]
    else:
        worlds = DEEDS
        wanted = {word.removesuffix("s") for word in rest.split()} if rest else set[str]()
        said = frozenset(deed for deed in DEEDS if wanted <= {*deed.split()}) - {"nothing"}
        assert said, clause
        if (link == "no") != (how == "did not "):
            said = worlds - said
    assert (how is None) == (verb in BASE), clause
    return (who + many, BASE.get(verb, verb)), worlds, worlds if how == "wanted to " else said


def verdict(pair: Inference) -> str:
    """The label by definition: entailment if true in all worlds of the premise, contradiction if true in none."""
    [asked] = clauses(pair.hypothesis.text)
    about, possible, wanted = meaning(asked)
    for key, _, said in map(meaning, clauses(pair.premise.text)):
        if key == about:
            possible &= said
    assert possible
    return LABELS[0] if possible <= wanted else LABELS[2] if possible & wanted else LABELS[1]


def clauses(sentence: str) -> list[str]:
    assert sentence[0].isupper() and sentence.endswith(".")
    return re.split(", and |, ", sentence[0].lower() + sentence[1:-1])


def of_template(template: Sequence[str], count: int, seed: int = 3) -> list[Square]:
    return [*islice(squares(seed, [template]), count)]


EACH_TEMPLATE = pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template[3])


@EACH_TEMPLATE
def test_labels_follow_from_the_worlds_in_which_both_sentences_are_true(template: Sequence[str]) -> None:
    for pair in chain.from_iterable(of_template(template, 60)):
        assert verdict(pair) == pair.label, (pair.premise.text, pair.hypothesis.text, pair.label)


@EACH_TEMPLATE
def test_every_sentence_of_a_square_stands_once_under_each_label(template: Sequence[str]) -> None:
    for square in of_template(template, 40):
        for side in ("premise", "hypothesis"):
            under = Counter((getattr(pair, side).text, pair.label) for pair in square)
            assert len(under) == 9 and len({text for text, _ in under}) == 3
        assert {pair.label for pair in square} == {*LABELS}


DRAWN = """
the>{0}:det {0}>wanted:nsubj to>buy:mark buy>wanted:xcomp a>hat:det red>hat:amod hat>buy:obj
some>{1}:det {1}>sleep:nsubj did>sleep:aux not>sleep:advmod in>school:case the>school:det school>sleep:obl
the>{2}:det {2}>older:nsubj was>older:cop than>girl:case the>girl:det girl>older:obl
"""
"""Each word of three clauses with its head and its relation."""


def test_a_tree_is_the_one_drawn_by_hand() -> None:
    written = (
        "the {who} wanted to buy a red hat",
        "some {who}s did not sleep in the school",
        "the {who} was older than the girl",
    )
    found = (square[0].premise for square in squares(1, [(*written, written[0], written[0])]))
    premise = next(premise for premise in found if premise.text.count(",") == 2)
    who = [re.findall(rf"(\w+) {verb} ", premise.text)[0] for verb in ("wanted", "did", "was")]
    tokens = premise.tree.tokens
    heads = [tokens[token.head - 1].form.lower() if token.head else "" for token in tokens]
    arcs = [(token.relation, f"{token.form.lower()}>{head}") for token, head in zip(tokens, heads, strict=True)]
    row = ("root", "conj", "punct", "cc")
    inner = sorted(f"{arc}:{relation}" for relation, arc in arcs if relation not in row)
    assert inner == sorted(DRAWN.format(*who).split())
    first, second, third = sorted(("wanted", "sleep", "older"), key=premise.text.find)
    drawn = {("root", f"{first}>"), ("conj", f"{second}>{first}"), ("conj", f"{third}>{first}")}
    drawn |= {("punct", f",>{second}"), ("punct", f",>{third}"), ("cc", f"and>{third}"), ("punct", f".>{first}")}
    assert {arc for arc in arcs if arc[0] in row} == drawn


def words(text: str) -> list[str]:
    return text.replace(",", " ,").replace(".", " .").lower().split()


def both(pair: Inference) -> Iterator[str]:
    """The words of both sentences, and the number of hypothesis words that are missing from the premise."""
    first, second = words(pair.premise.text), words(pair.hypothesis.text)
    missing = [word for word in second if word not in first]
    return chain((f"p {word}" for word in first), (f"h {word}" for word in second), [f"missing {len(missing)}"])


def guessed(train: Sequence[Inference], test: Sequence[Inference]) -> float:
    """Accuracy of a logistic regression over `both`, trained by gradient descent with momentum."""
    counts = Counter(feature for pair in train for feature in {*both(pair)})
    index = {feature: number for number, (feature, count) in enumerate(counts.items()) if count > 1}

    def table(pairs: Sequence[Inference]) -> tuple[np.ndarray, np.ndarray]:
        rows = np.zeros((len(pairs), len(counts) + 1), np.float32)
        rows[:, -1] = 1.0
        for row, pair in zip(rows, pairs, strict=True):
            row[[index[feature] for feature in both(pair) if feature in index]] = 1.0
        return rows, np.array([LABELS.index(pair.label) for pair in pairs])

    x, y = table(train)
    weights = np.zeros((x.shape[1], 3), np.float32)
    speed = np.zeros_like(weights)
    for _ in range(60):
        scores = x @ weights
        chances = np.exp(scores - scores.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        chances[np.arange(len(y)), y] -= 1.0
        speed = 0.9 * speed - 0.5 * (x.T @ chances / len(y) + 1e-4 * weights)
        weights += speed
    tried, right = table(test)
    return float(((tried @ weights).argmax(1) == right).mean())


def shares_its_words(square: Square) -> bool:
    """Whether a square's premises have the same words, including all of each hypothesis's except the subject."""
    return len({tuple(sorted(words(pair.premise.text))) for pair in square}) == 1


@pytest.fixture(scope="module")
def pairs() -> tuple[list[Inference], list[Inference]]:
    found = list(chain.from_iterable(islice(squares(1), 400)))
    return found[:2700], found[2700:]


def test_no_word_or_pair_of_words_of_a_sentence_is_commoner_under_one_label() -> None:
    under: dict[str, Counter[str]] = {label: Counter() for label in LABELS}
    for pair in chain.from_iterable(islice(squares(2), 300)):
        found = words(pair.hypothesis.text)
        under[pair.label].update(chain(found, map(" ".join, pairwise(found))))
        under[pair.label].update(f"premise {word}" for word in words(pair.premise.text))
    assert under[LABELS[0]] == under[LABELS[1]] == under[LABELS[2]]


def test_the_words_of_both_sentences_help_but_do_not_solve_it(pairs: tuple[list[Inference], list[Inference]]) -> None:
    assert 0.6 < guessed(*pairs) < 0.85


def test_the_words_of_both_sentences_do_not_help_where_they_are_shared(
    pairs: tuple[list[Inference], list[Inference]],
) -> None:
    shared = [square for square in islice(squares(5), 1500) if shares_its_words(square)]
    assert 60 < len(shared) < 150
    assert abs(guessed(pairs[0], [*chain.from_iterable(shared)]) - 1 / 3) < 0.05


def test_the_words_of_both_sentences_hardly_say_who_is_older(pairs: tuple[list[Inference], list[Inference]]) -> None:
    compared = [*chain.from_iterable(of_template(TEMPLATES[-1], 100))]
    assert " than " in compared[0].premise.text
    assert guessed(pairs[0], compared) < 0.45


def test_where_its_clause_stands_in_the_premise_does_not_tell_the_label() -> None:
    met = Counter[tuple[int, str]]()
    for pair in chain.from_iterable(of_template(TEMPLATES[0], 1500)):
        keys = [meaning(clause)[0] for clause in clauses(pair.premise.text)]
        if len(keys) == len(LABELS):
            [asked] = clauses(pair.hypothesis.text)
            met[keys.index(meaning(asked)[0]), pair.label] += 1
    assert len(met) == 9 and met.total() > 500
    assert max(met.values()) < 1.4 * min(met.values())


def test_the_same_seed_writes_the_same() -> None:
    def lines(seed: int) -> list[tuple[str, str]]:
        return [(pair.source, pair.label) for pair in chain.from_iterable(islice(squares(seed), 30))]

    assert lines(5) == lines(5)
    assert lines(5) != lines(6)


def test_no_premise_comes_twice() -> None:
    met = [pair.premise.text for square in islice(squares(4), 2000) for pair in square[::3]]
    assert len({*met}) == len(met) == 6000


COUNTS = {"train": 180, "dev": 18, "test": 20}
ENTRY = {"kind": "grammar_pairs", "source": "en", "seed": 3, "pairs": COUNTS}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    build(ENTRY, tmp_path / "out", tmp_path)
    return tmp_path / "out"


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
    trees = read_conllu(write_trees(ENTRY, split, built / "trees.conllu"))
    assert [tree.text for tree in trees] == [*chain.from_iterable(lines)]


def test_the_grammar_of_pairs_has_gold_trees() -> None:
    assert has_gold(parse_corpus(ENTRY))

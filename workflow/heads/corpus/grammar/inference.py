"""Sentence pairs labelled by construction (entailment, contradiction or neutral), with gold trees.

Pairs come nine at a time, from three premises and three hypotheses about the same three topics. A premise joins one
clause per topic: premise i asserts topic i, excludes the next and leaves the third open; hypothesis j is about topic j
alone. The labels of the nine form a Latin square: every premise and every hypothesis occurs once with each label, so
neither by itself says anything about the label, even to a reader who has memorised all of them. If hypotheses are
denied, always all three or none, asserted and excluded swap, and the labels still form a Latin square.

As in SNLI (Bowman et al. 2015, sec. 2.1) both sentences are about one event and the same people and things: a red hat
was not a blue one, and whoever slept in the school did not sleep in the museum. Different nouns mean different people.
Shared words say more about the label than either sentence alone, but not everything: where the topics share words,
only who belongs to what separates the labels; elsewhere a word of the hypothesis is often missing from the premise
unless it is entailed, as in pairs that people write.
"""

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeVar

from heads.corpus.distinct import SeenBefore
from heads.corpus.grammar import split_of
from heads.corpus.grammar.lexicon import rows
from heads.corpus.grammar.words import Node, comma, in_order, leaf, surface, tree
from heads.syntax.conllu import Sentence

LABELS = (ENTAILMENT, CONTRADICTION, NEUTRAL) = ("entailment", "contradiction", "neutral")
"""Labels by the state of the hypothesis's topic in the premise: asserted, excluded, open."""
ASSERTED, EXCLUDED, OPEN, ASKED, DENIED = range(5)
TOPICS = range(3)
SHARED, BRIEF, DENYING = 0.07, 0.95, 0.3
"""Shares of scenes whose topics share words, of other scenes silent on the open topic, of denied hypotheses."""
CAPACITY = 10_000_000

TEMPLATES = tuple(tuple(cells[:5]) for cells in rows("templates.tsv"))
"""Clauses about a topic: asserted, excluded and open in a premise, asked for and denied in a hypothesis."""

# No singular ends in -s and no noun begins with a vowel; all plurals are formed with -s.
PEOPLE: tuple[str, ...] = ("boy", "girl", "doctor", "teacher", "soldier", "farmer", "student", "singer")
PEOPLE += ("nurse", "lawyer", "guard", "king")
ALONE = {"sleep": "slept", "sing": "sang", "dance": "danced", "laugh": "laughed", "work": "worked", "wait": "waited"}
ALONE |= {"cry": "cried", "smile": "smiled"}
GETTING = {"buy": "bought", "find": "found", "sell": "sold", "draw": "drew", "lose": "lost", "steal": "stole"}
GETTING |= {"hide": "hid", "see": "saw"}
KINDS = {"bird": "crow", "flower": "rose", "tool": "hammer", "toy": "doll", "vehicle": "car", "fish": "trout"}
COLOURS = ("red", "blue", "green", "white", "black", "yellow")
PLACES = ("school", "museum", "garden", "library", "kitchen", "factory")
MORE = {"older": "younger", "taller": "shorter", "stronger": "weaker", "richer": "poorer"}

HEADS = {  # verbs and adjectives, with lemma, part of speech and relation
    **{form: (base, "VERB", "xcomp") for base, past in (ALONE | GETTING).items() for form in (base, past)},
    **{word: (word.removesuffix("er"), "ADJ", "xcomp") for pair in MORE.items() for word in pair},
    "wanted": ("want", "VERB", "xcomp"),
}
BEFORE = {  # words that come before their head, with the same
    **{word: (word, "DET", "det") for word in ("the", "a", "no", "all", "some")},
    **{word: (word, "ADP", "case") for word in ("in", "than")},
    **{word: (word, "ADJ", "amod") for word in COLOURS},
    **{"did": ("do", "AUX", "aux"), "was": ("be", "AUX", "cop"), "not": ("not", "PART", "advmod")},
    "to": ("to", "PART", "mark"),
}

Item = TypeVar("Item")
Roll = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Written:
    """A sentence as text, with its words in a tree."""

    text: str
    words: Sequence[Node]

    @property
    def tree(self) -> Sentence:
        """The gold tree."""
        return tree(self.words)


@dataclass(frozen=True, slots=True)
class Inference:
    """A premise, a hypothesis and their label."""

    premise: Written
    hypothesis: Written
    label: str

    @property
    def source(self) -> str:
        """Both sentences on one line of a corpus, separated by a tab."""
        return f"{self.premise.text}\t{self.hypothesis.text}"


def squares(seed: int, templates: Sequence[Sequence[str]] = TEMPLATES) -> Iterator[tuple[Inference, ...]]:
    """Endless squares of nine pairs, no premise in two of them, the same for the same seed."""
    roll, seen = random.Random(seed).random, SeenBefore(CAPACITY, 0.0001)
    while True:
        square = _square(_one_of(templates, roll), roll)
        if all(seen.add(pair.premise.text) for pair in square[::3]):
            yield square


def first_of_split(seed: int, split: str, count: int) -> Iterator[Inference]:
    """The first `count` pairs of a split, the same at every call; each square belongs to one split."""
    found = (nine for nine in squares(seed) if split_of(nine[0].source) == split)
    return islice(chain.from_iterable(found), count)


def _square(template: Sequence[str], roll: Roll) -> tuple[Inference, ...]:
    shared, denied = roll() < SHARED, roll() < DENYING
    words = _words(roll, shared=shared)
    silent = not template[OPEN] or (not shared and roll() < BRIEF)
    asked, labels = (DENIED, (CONTRADICTION, ENTAILMENT, NEUTRAL)) if denied else (ASKED, LABELS)

    def write(states: Sequence[tuple[int, int]]) -> Written:
        clauses = [_one_of(template[state].split("|"), roll).format(**words[topic]) for topic, state in states]
        return _written([_clause(clause) for clause in _mixed(clauses, roll)])

    # In premise i, topic (i + state) modulo 3 is in that state.
    states = (ASSERTED, EXCLUDED) if silent else (ASSERTED, EXCLUDED, OPEN)
    premises = [write([((number + state) % 3, state) for state in states]) for number in TOPICS]
    hypotheses = [write([(topic, asked)]) for topic in TOPICS]
    numbers = [(number, topic) for number in TOPICS for topic in TOPICS]
    return tuple(Inference(premises[i], hypotheses[j], labels[(j - i) % 3]) for i, j in numbers)


def _mixed(items: Collection[str], roll: Roll) -> list[str]:
    return sorted(items, key=lambda _: roll())


def _one_of(items: Sequence[Item], roll: Roll) -> Item:
    return items[int(roll() * len(items))]


def _words(roll: Roll, *, shared: bool) -> list[dict[str, str]]:
    """The words for the gaps of each topic; if `shared`, all have those of the first topic, except for people."""
    people, *others = (_mixed(table, roll) for table in (PEOPLE, ALONE, GETTING, KINDS, MORE, COLOURS, PLACES))
    found = []
    for topic in TOPICS:
        own = 0 if shared else topic
        do, get, kind, more, colour, place = (table[own] for table in others)
        other_colour, other_place = (table[own + 3] for table in others[-2:])
        found.append(
            {"who": people[topic], "next": people[(topic + 1) % 3], "more": more, "less": MORE[more]}
            | {"do": do, "did": ALONE[do], "get": get, "got": GETTING[get], "kind": kind, "thing": KINDS[kind]}
            | {"colour": colour, "other_colour": other_colour, "place": place, "other_place": other_place}
        )
    return found


def _clause(text: str) -> Node:
    """The tree of a clause: the subject comes first, each noun after its own words, all else after its head."""
    waiting: list[Node] = []
    heads: list[Node] = []
    for word in text.split():
        if word in BEFORE:
            waiting.append(Node(word, *BEFORE[word]))
            continue
        lemma, upos, relation = HEADS.get(word) or (word.removesuffix("s"), "NOUN", "obj" if heads else "nsubj")
        if waiting and waiting[0].upos == "ADP":
            relation = "obl"
        node = Node(word, lemma, upos, relation)
        node.before, waiting = waiting, []
        if heads:
            heads[-1].after.append(node)
        if relation == "nsubj":
            waiting = [node]
        elif upos != "NOUN":
            heads.append(node)
    return heads[0]


def _written(clauses: Sequence[Node]) -> Written:
    """Clauses joined into one sentence, the last after "and"; the first is the head."""
    first, *others = clauses
    for node in others:
        node.relation = "conj"
        node.before[:0] = [comma(), *([leaf("and", "CCONJ", "cc")] if node is others[-1] else [])]
    first.relation = "root"
    first.after += [*others, leaf(".", "PUNCT", "punct")]
    words = in_order(first)
    return Written(surface(words), words)

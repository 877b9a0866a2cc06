"""Words that exclude one another, and draws of words that suit each other: what scenes of `inference` are made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import combinations
from typing import TypeVar

from heads.corpus.grammar.lexicon import Lexicon, Noun, NounBag, Verb, falling
from heads.corpus.grammar.names import Kind, spell
from heads.corpus.grammar.wording import Being

Item = TypeVar("Item")
Pair = tuple[str, str]

COLOURS = ("red", "white", "black", "green")
OPPOSITES: tuple[Pair, ...] = (
    ("old", "young"),
    ("big", "small"),
    ("long", "short"),
    ("good", "bad"),
    ("clever", "stupid"),
    ("clean", "dirty"),
)
COMPARATIVES = {
    "old": "older",
    "young": "younger",
    "rich": "richer",
    "poor": "poorer",
    "strong": "stronger",
    "tall": "taller",
}
CONTRASTS = (*OPPOSITES, *combinations(COLOURS, 2))
NUMBERS = ("two", "three", "four", "five", "six", "seven")
MANNERS: tuple[Pair, ...] = (
    ("quickly", "slowly"),
    ("sadly", "cheerfully"),
    ("calmly", "angrily"),
    ("boldly", "secretly"),
)
DAYS: Pair = ("yesterday", "today")
WISHES = ("want", "hope", "decide")
"""Verbs that leave open whether what is wished comes true."""
REPORTS = ("say", "think", "write")
"""Verbs that leave open whether what is said is true."""
POSTURES = ("live", "die", "stand", "sit", "lie", "rise", "fall", "stop", "appear", "disappear")
"""Verbs without an object that some other of them denies, or says."""
ONE_SIDED = ("attack", "call", "draw", "find", "follow", "help", "save")
"""Verbs of what, as it happens, one of two does and the other does not."""
COMMON, VERBS, NAMES = 5, 6, 2
"""How many nouns of a kind are drawn from, how many verbs with an object, and how many names of men and of women: a
small model sees each of them often enough to find out soon what it is about."""
ANYBODY = "person"
"""A noun that leaves open whether it is of somebody that another noun names."""
NEAR = ("near", "behind", "opposite")


class Draws:
    """Draws of words; `roll` gives random numbers in [0, 1)."""

    def __init__(self, lexicon: Lexicon, roll: Callable[[], float]) -> None:
        self.lexicon = lexicon
        self.roll = roll
        self.people = commonest(lexicon.bag("person"), COMMON)
        self.physical = lexicon.bag("person animal thing building vehicle tree")
        self.buildings = commonest(lexicon.bag("building"), COMMON)
        self.wishes = [verb for verb in lexicon.verbs if verb.kind == "wish" and verb.base in WISHES]
        self.reports = [verb for verb in lexicon.verbs if verb.kind == "speech" and verb.base in REPORTS]
        acting = [verb for verb in lexicon.verbs_of["acting"].items if verb.subjects.people and _has_things(verb)]
        self.acting = falling(acting[:VERBS])
        self._objects = {id(verb): commonest(verb.objects, COMMON) for verb in acting if verb.objects}
        self.mutual = [verb for verb in acting if _is_mutual(verb)]
        self.one_sided = [verb for verb in self.mutual if verb.base in ONE_SIDED]
        alone = [verb for verb in lexicon.verbs_of["being"].items if verb.subjects.people and verb.base not in POSTURES]
        self.alone = alone[:VERBS]
        self.placed = [verb for verb in self.alone if verb.placed]
        found = {
            noun: contrasts_of(adjective.english for adjective in bag.items) for noun, bag in lexicon.adjectives.items()
        }
        self._contrasts_of = {noun: contrasts for noun, contrasts in found.items() if contrasts}
        self._of_pair = cache(self._suiting)

    def one_of(self, items: Sequence[Item]) -> Item:
        """One of the items, each with the same chance."""
        return items[int(self.roll() * len(items))]

    def chance(self, share: float) -> bool:
        """True in this share of calls."""
        return self.roll() < share

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """The items in random order."""
        return sorted(items, key=lambda _: self.roll())

    def turned(self, pair: Pair) -> Pair:
        """A pair in one of its two orders."""
        return pair if self.chance(0.5) else (pair[1], pair[0])

    def person(self) -> Being:
        """Somebody, with a name or without."""
        if self.chance(0.5):
            return Being(None, spell(int(self.roll() * NAMES), Kind.MAN if self.chance(0.5) else Kind.WOMAN))
        return self.somebody()

    def somebody(self) -> Being:
        """Somebody without a name, of whom a relative clause can tell more."""
        return Being(self.people.draw(self.roll))

    def distinct(self, draw: Callable[[], Item], count: int = 3) -> list[Item] | None:
        """So many different items, or None where the draws hold too few."""
        found: list[Item] = []
        for _ in range(8 * count):
            one = draw()
            if one not in found:
                found.append(one)
            if len(found) == count:
                return found
        return None

    def object_of(self, verb: Verb) -> Noun:
        """Something that takes an article, to be the object of a verb of `acting`."""
        return self._objects[id(verb)].draw(self.roll)

    def contrast_of(self, noun: Noun) -> Pair:
        """Two qualities of a noun of `suiting` that exclude each other."""
        return self.turned(self.one_of(self._contrasts_of[noun.singular]))

    def suiting(self, bag: NounBag, pair: Pair | None) -> NounBag | None:
        """Those nouns of a bag that a pair of CONTRASTS suits, or any of them; None if there are few."""
        return self._of_pair(bag, pair)

    def _suiting(self, bag: NounBag, pair: Pair | None) -> NounBag | None:
        found = ((noun, self._contrasts_of.get(noun.singular, ())) for noun in bag.items if noun.singular != ANYBODY)
        nouns = [noun for noun, contrasts in found if (pair in contrasts if pair else contrasts)]
        return NounBag(nouns[:COMMON]) if len(nouns) > 2 else None


def commonest(bag: NounBag, count: int) -> NounBag:
    """The first so many nouns of a bag that take an article, and name somebody or something."""
    nouns = [noun for noun in bag.items if "bare" not in noun.classes and noun.singular != ANYBODY]
    return NounBag(nouns[:count])


def _has_things(verb: Verb) -> bool:
    """Whether its object takes an article, and cannot be read as a place, as in "laughed at the factory"."""
    if verb.objects is None or verb.government is None or verb.government.english in ("at", "in"):
        return False
    return not all("bare" in noun.classes for noun in verb.objects.items)


def _is_mutual(verb: Verb) -> bool:
    """Whether people do it to people, without a preposition."""
    assert verb.government is not None
    assert verb.objects is not None
    return not verb.government.english and verb.objects.people


def contrasts_of(qualities: Iterable[str]) -> tuple[Pair, ...]:
    """The pairs of these qualities that exclude each other."""
    known = {*qualities}
    return tuple(pair for pair in CONTRASTS if {*pair} <= known)

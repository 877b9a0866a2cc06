"""The word tables, read once and turned into bags to draw from.

Kinds of verbs: plain (with or without object), motion (may take a goal), give (object and recipient), speech (takes a
that-clause), wish (takes an infinitive), state (English "was afraid of", a Russian verb), turned (the English subject
is a Russian dative or "у" with genitive, and the verb agrees with the English object).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from heads.corpus.grammar.russian import CASES, Agreeing, Forms, decline, decline_adjective, past_forms

Item = TypeVar("Item")
SLOTS = 512
COMPOUND_GROUP = 5
COMPOUND_WEIGHT = 2.5
PEOPLE = 20


class Bag(Generic[Item]):
    """Items drawn with given weights, one table look-up per draw (weights are rounded to 1/512, at least one slot)."""

    __slots__ = ("items", "table")

    def __init__(self, items: Sequence[Item], weights: Sequence[float]) -> None:
        total = sum(weights)
        self.items = tuple(items)
        table = [item for item, w in zip(items, weights, strict=True) for _ in range(max(1, round(w / total * SLOTS)))]
        self.table = tuple(table)

    def draw(self, roll: Callable[[], float]) -> Item:
        """One item; `roll` gives numbers in [0, 1)."""
        return self.table[int(roll() * len(self.table))]


class NounBag(Bag["Noun"]):
    """Nouns to draw; `people` says whether it holds people in general, so that names and pronouns fit too."""

    __slots__ = ("people",)

    def __init__(self, nouns: Sequence[Noun]) -> None:
        super().__init__(nouns, [noun.weight for noun in nouns])
        self.people = sum("person" in noun.classes for noun in nouns) >= PEOPLE


@dataclass(frozen=True, slots=True)
class Government:
    """How a verb takes its object: English preposition ("" for a bare object), Russian preposition and case."""

    english: str
    russian: str
    case: int


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun; `forms` is [plural][case]; `place` the English and Russian preposition of place, if it is a place."""

    singular: str
    plural: str
    gender: int
    animate: bool
    forms: tuple[Forms, Forms]
    classes: frozenset[str]
    place: tuple[str, str] | None
    weight: float


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective in the sense it has with some noun; group 0 comes leftmost, group 5 are nouns in English."""

    english: str
    group: int
    forms: Agreeing
    weight: float


@dataclass(frozen=True, slots=True)
class Verb:
    """One sense of a verb; `subjects` and `objects` are the nouns it goes with, `past` is by agreement.

    `placed`: it may take a place of action."""

    english: str
    base: str
    past: Forms
    infinitive: str
    aspect: str
    placed: bool
    kind: str
    subject: Government
    subjects: NounBag
    government: Government | None
    objects: NounBag | None
    tools: NounBag | None


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All words. `adjectives`, `done_by`, `done_to` are keyed by the noun's singular."""

    nouns: tuple[Noun, ...]
    verbs: tuple[Verb, ...]
    verbs_of: dict[str, Bag[Verb]]
    adverbs: dict[str, Bag[tuple[str, str]]]
    adjectives: dict[str, Bag[Adjective]]
    done_by: dict[str, Bag[Verb]]
    done_to: dict[str, Bag[Verb]]

    def bag(self, selector: str) -> NounBag:
        """The nouns that `selector` names."""
        return noun_bag(self.nouns, selector)


def rows(name: str) -> Iterable[list[str]]:
    """The cells of each line of a table beside this module, padded to ten; comments are left out."""
    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            cells = line.split("\t")
            yield cells + [""] * (10 - len(cells))


def suits(noun: Noun, selector: str) -> bool:
    """Whether a word of `selector` is the noun or one of its classes, and no word with a minus is."""
    names = noun.classes | {noun.singular}
    words = selector.split()
    return any(word in names for word in words) and not any(word[1:] in names for word in words if word[0] == "-")


def noun_bag(nouns: Sequence[Noun], selector: str) -> NounBag:
    """The nouns that `selector` names; raises ValueError for a word that names none."""
    known = {name for noun in nouns for name in (*noun.classes, noun.singular)}
    unknown = {word.lstrip("-") for word in selector.split()} - known
    if unknown:
        raise ValueError(f"no noun or class {sorted(unknown)} in {selector!r}")
    return NounBag([noun for noun in nouns if suits(noun, selector)])


def _nouns() -> tuple[Noun, ...]:
    nouns: list[Noun] = []
    met: dict[str, int] = {}
    for singular, plural, russian, code, exceptions, classes, *_ in rows("nouns.tsv"):
        forms = decline(russian, code, dict(pair.split("=", 1) for pair in exceptions.split()))
        names = classes.split()
        place = next((name.split(":") for name in names if ":" in name), None)
        met[names[0]] = met.get(names[0], 0) + 1
        nouns.append(
            Noun(
                singular,
                "" if plural == "-" else plural or singular + "s",
                "mfn".index(code[0]),
                "a" in code,
                forms,
                frozenset(name for name in names if ":" not in name),
                (place[0], place[1]) if place else None,
                1.0 / (met[names[0]] + 1.5),
            )
        )
    return tuple(nouns)


def government(cell: str) -> Government | None:
    """Read "of:gen" or "obj:на+acc"; None for a dash."""
    if ":" not in cell:
        return None
    english, _, russian = cell.partition(":")
    preposition, _, case = russian.rpartition("+")
    return Government("" if english == "obj" else english, preposition, CASES[case])


def _verbs(nouns: Sequence[Noun]) -> tuple[Verb, ...]:
    verbs = []
    for english, base, past, infinitive, aspect, kind, subjects, governed, objects, tools in rows("verbs.tsv"):
        turned = "nom"
        if kind == "turned":
            turned, subjects = subjects.split(" ", 1)
        subject = government(f"obj:{turned}")
        assert subject is not None
        verbs.append(
            Verb(
                english,
                base,
                past_forms(past),
                infinitive,
                aspect[0],
                aspect in ("i", "p") and kind in ("plain", "give"),
                kind,
                subject,
                noun_bag(nouns, subjects),
                government(governed),
                noun_bag(nouns, objects) if objects else None,
                noun_bag(nouns, tools) if tools else None,
            )
        )
    return tuple(verbs)


def _adjectives(nouns: Sequence[Noun]) -> dict[str, Bag[Adjective]]:
    found: dict[str, list[Adjective]] = {noun.singular: [] for noun in nouns}
    met: dict[str, int] = {}
    for english, russian, cell, selector, senses, *_ in rows("adjectives.tsv"):
        met[cell], group = met.get(cell, 0) + 1, int(cell)
        weight = (COMPOUND_WEIGHT if group == COMPOUND_GROUP else 1.0) / (met[cell] + 6.0)
        words = [*(sense.split("=") for sense in senses.split()), ("", russian)]
        meant = [(name, Adjective(english, group, decline_adjective(word), weight)) for name, word in words]
        for noun in noun_bag(nouns, selector).items:
            found[noun.singular].append(next(sense for name, sense in meant if not name or suits(noun, name)))
    return {noun: Bag(suiting, [one.weight for one in suiting]) for noun, suiting in found.items() if suiting}


def bags(keyed: Iterable[tuple[str, Item]], flatness: float) -> dict[str, Bag[Item]]:
    """The items of each key in a bag, from which earlier ones are drawn more often."""
    found: dict[str, list[Item]] = {}
    for key, item in keyed:
        found.setdefault(key, []).append(item)
    return {key: Bag(items, [1.0 / (rank + flatness) for rank, _ in enumerate(items)]) for key, items in found.items()}


def group_of(verb: Verb) -> str:
    """Its kind; a plain verb is "acting" if it has objects, else "being"."""
    return verb.kind if verb.kind != "plain" else "acting" if verb.objects else "being"


@cache
def load() -> Lexicon:
    """Read the tables (once per process)."""
    nouns = _nouns()
    verbs = _verbs(nouns)
    adverbs = [
        (kind, (english, russian)) for english, russian, kinds, *_ in rows("adverbs.tsv") for kind in kinds.split()
    ]
    done_by = [verb for verb in verbs if verb.kind not in ("speech", "wish")]
    done_to = [(verb.objects, verb) for verb in verbs if verb.objects and verb.kind in ("plain", "give")]
    return Lexicon(
        nouns,
        verbs,
        bags(((group_of(verb), verb) for verb in verbs), 4.0),
        bags(adverbs, 2.0),
        _adjectives(nouns),
        bags(((noun.singular, verb) for verb in done_by for noun in verb.subjects.items), 4.0),
        bags(((noun.singular, verb) for objects, verb in done_to for noun in objects.items), 4.0),
    )

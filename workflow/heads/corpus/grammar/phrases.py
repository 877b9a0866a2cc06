"""Noun phrases: English words as a tree, and the Russian in the case that its place in the sentence requires.

So that the English text determines the tree and the Russian, each preposition attaches by rule: of, from, about, with
and without to a noun before them that takes them, all others to the verb; and a noun phrase that ends in a relative
clause is `closed`: nothing of the same clause follows it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from heads.corpus.grammar.lexicon import Lexicon, Noun, NounBag, Verb
from heads.corpus.grammar.modifiers import Modifiers
from heads.corpus.grammar.names import Kind, decline_name, draw_name
from heads.corpus.grammar.pronouns import PRONOUNS, Pronoun
from heads.corpus.grammar.russian import ACC, DAT, FEMININE, GEN, INS, LOC, MASCULINE, PLURAL, PRE, attach
from heads.corpus.grammar.words import Node, comma, leaf, stands_for

PLAIN, MODIFIED, FULL = range(3)  # what a noun may carry: adjectives; also a phrase; also a clause or a second noun


@dataclass(slots=True)
class Phrase:
    """English tree, Russian text, agreement of the past tense; `noun` is the head if that is one common noun."""

    node: Node
    russian: str
    agreement: int
    closed: bool = False
    noun: Noun | None = None


PLURAL_SHARE = 0.3


class Phrases:
    """Writes noun phrases; `roll` gives random numbers in [0, 1)."""

    def __init__(self, lexicon: Lexicon, roll: Callable[[], float]) -> None:
        self.lexicon = lexicon
        self.roll = roll
        # Writes a relative clause for a noun and its agreement, if there is one for it; set by `Sentences`.
        self.relative: Callable[[Noun, int], Phrase | None] = lambda *_: None
        self.taken = ""
        self.modifiers = Modifiers(lexicon, roll)
        self.owners = lexicon.bag("person")
        self.pets = lexicon.bag("animal")
        self.parts = lexicon.bag("part")
        self.wholes = lexicon.bag("building hut")
        self.homes = lexicon.bag("land")
        self.topics = lexicon.bag("person animal event land")
        self.places = lexicon.bag("place")
        self.marks = lexicon.bag("building tree river lake bridge table window road stone")

    def of_people(self, case: int, preposition: str, room: int, *, subject: bool = False) -> Phrase:
        """A pronoun, a name, or one or several nouns that mean people."""
        dice = self.roll()
        if dice < 0.13:
            who = PRONOUNS[int(self.roll() ** 1.5 * len(PRONOUNS))]
            if subject or who.subject != self.taken:
                return self.pronoun(who, case, preposition, subject=subject)
        if dice < 0.30:
            return self.person(case, preposition)
        if dice < 0.37 and room == FULL:
            return self.several(case, preposition, self.owners, subject=subject)
        return self.common(self.owners.draw(self.roll), case, preposition, room, subject=subject)

    def pronoun(self, who: Pronoun, case: int, preposition: str, *, subject: bool) -> Phrase:
        """A personal pronoun."""
        form = who.subject if subject else who.object
        forms = who.after_preposition if preposition else who.plain
        node = Node(form, who.subject, "PRON", "")
        return Phrase(node, preposed(preposition, stands_for(forms[case], node), node), who.agreement)

    def person(self, case: int, preposition: str) -> Phrase:
        """The name of a man or a woman, equally likely."""
        return self.name(Kind.MAN if self.roll() < 0.5 else Kind.WOMAN, case, preposition)

    def name(self, kind: Kind, case: int, preposition: str) -> Phrase:
        """A proper name."""
        english = draw_name(self.roll, kind)
        node = leaf(english, "PROPN", "")
        russian = stands_for(decline_name(english, kind)[min(case, PRE)], node)
        return Phrase(node, preposed(preposition, russian, node), FEMININE if kind is Kind.WOMAN else MASCULINE)

    def several(self, case: int, preposition: str, bag: NounBag, *, subject: bool) -> Phrase:
        """Two or three nouns or names joined by "and", with a single preposition."""
        count = 3 if self.roll() < 0.15 else 2
        members = []
        for index in range(count):
            word = preposition if index == 0 else ""
            if bag.people and self.roll() < 0.25:
                members.append(self.person(case, word))
            else:
                members.append(self.common(bag.draw(self.roll), case, word, PLAIN, subject=subject))
        first = members[0]
        russian = first.russian
        for index, member in enumerate(members[1:], start=2):
            english, word = (leaf("and", "CCONJ", "cc"), "и") if index == count else (comma(), ",")
            member.node.relation = "conj"
            member.node.before.insert(0, english)
            first.node.after.append(member.node)
            russian += f" {stands_for(word, english)} {member.russian}"
        return Phrase(first.node, russian, PLURAL)

    def common(self, noun: Noun, case: int, preposition: str, room: int, *, subject: bool = False) -> Phrase:
        """A common noun, singular or plural, with its modifiers."""
        many = noun.plural != "" and self.roll() < PLURAL_SHARE
        return self.counted(noun, case, preposition, room, many=many, article_of="subject" if subject else "any")

    def counted(self, noun: Noun, case: int, preposition: str, room: int, *, many: bool, article_of: str) -> Phrase:
        """As `common`, but of given number; `article_of` is "new" (a or none), "subject" (any determiner) or "any"."""
        agreement = PLURAL if many else noun.gender
        node = Node(noun.plural if many else noun.singular, noun.singular, "NOUN", "")
        russian = stands_for(noun.forms[many][case], node)
        if "bare" in noun.classes:
            agreement = PLURAL if noun.singular == "chess" else agreement
            return Phrase(node, preposed(preposition, russian, node), agreement)
        adjectives = self.modifiers.adjectives(noun, node, agreement, case)
        determiner, owner = "", ""
        if room and not noun.place and self.roll() < 0.07:
            owner = self._possessor(node)
        else:
            determiner = self.modifiers.determiner(noun, node, agreement, case, many=many, article_of=article_of)
        owned = bool(node.before) and node.before[0].relation == "nmod:poss"
        russian = preposed(preposition, f"{determiner}{adjectives}{russian}{owner}", node)
        closed = False
        if room and not owned:
            dice = self.roll()
            if room == FULL and dice < 0.17:
                clause = self.relative(noun, agreement)
                if clause:
                    node.after.append(clause.node)
                    russian, closed = f"{russian} , {clause.russian} ,", True
            elif dice < 0.36:
                russian += self._noun_modifier(noun, node)
        return Phrase(node, russian, agreement, closed, noun)

    def _possessor(self, node: Node) -> str:
        """Put "the doctor's" in front; return the Russian genitive that follows the noun, with a space before it."""
        dice = self.roll()
        noun = self.owners.draw(self.roll)
        owner = self.person(GEN, "") if dice < 0.4 or noun.singular == node.lemma else self._singular(noun, GEN)
        owner.node.relation = "nmod:poss"
        owner.node.after.append(leaf("'s", "PART", "case"))
        node.before.insert(0, owner.node)
        return f" {owner.russian}"

    def _singular(self, noun: Noun, case: int) -> Phrase:
        node = Node(noun.singular, noun.singular, "NOUN", "")
        adjectives = self.modifiers.adjectives(noun, node, noun.gender, case) if self.roll() < 0.3 else ""
        node.before.insert(0, leaf("the", "DET", "det"))
        return Phrase(node, adjectives + stands_for(noun.forms[0][case], node), noun.gender)

    def _noun_modifier(self, noun: Noun, node: Node) -> str:
        """Attach "of the house", "about the war", "from the village" or "with the dog" to the noun."""
        classes = noun.classes
        dice = self.roll()
        if "part" in classes:
            english, inner = "of", self.common(self.wholes.draw(self.roll), GEN, "", PLAIN)
        elif "body" in classes or "kin" in classes:
            named = self.roll() < 0.3
            inner = self.person(GEN, "") if named else self.common(self.owners.draw(self.roll), GEN, "", PLAIN)
            english = "of"
        elif "text" in classes:
            english, inner = "about", self.common(self.topics.draw(self.roll), PRE, "о", PLAIN)
        elif "person" in classes and dice < 0.5:
            english, inner = "from", self.home(self.homes.draw(self.roll) if dice < 0.3 else None)
        elif "building" in classes or "person" in classes:
            bag, share = (self.parts, 0.6) if "building" in classes else (self.pets, 0.85)
            english, case, preposition = ("with", INS, "с") if dice < share else ("without", GEN, "без")
            inner = self.common(bag.draw(self.roll), case, preposition, PLAIN)
        else:
            return ""
        node.after.append(self.oblique(english, inner, "nmod").node)
        return f" {inner.russian}"

    def home(self, noun: Noun | None) -> Phrase:
        """Where somebody is from: a place with its own preposition, or a named town."""
        if noun is None or noun.place is None:
            return self.name(Kind.TOWN, GEN, "из")
        return self.common(noun, GEN, "из" if noun.place[1] == "в" else "с", PLAIN)

    def governed(self, verb: Verb, room: int) -> Phrase:
        """The object of a verb, with its English preposition; relation obj or obl."""
        bag, government = verb.objects, verb.government
        assert bag is not None
        assert government is not None
        if bag.people and self.roll() < 0.5:
            phrase = self.of_people(government.case, government.russian, room)
        elif room == FULL and self.roll() < 0.06 and "bare" not in bag.items[0].classes:
            phrase = self.several(government.case, government.russian, bag, subject=False)
        else:
            phrase = self.common(bag.draw(self.roll), government.case, government.russian, room)
        if government.english:
            return self.oblique(government.english, phrase)
        phrase.node.relation = "obj"
        return phrase

    def oblique(self, english: str, phrase: Phrase, relation: str = "obl") -> Phrase:
        """Put an English preposition before a phrase."""
        phrase.node.relation = relation
        phrase.node.before.insert(0, leaf(english, "ADP", "case"))
        return phrase

    def where(self, room: int) -> Phrase:
        """A phrase of place that depends on the verb."""
        dice = self.roll()
        if dice < 0.12:
            return self.oblique("in", self.name(Kind.TOWN, PRE, "в"))
        if dice < 0.7:
            noun = self.places.draw(self.roll)
            assert noun.place is not None
            return self.oblique(noun.place[0], self.common(noun, LOC, noun.place[1], room))
        english, russian, case = RELATIONS[int(self.roll() * len(RELATIONS))]
        return self.oblique(english, self.common(self.marks.draw(self.roll), case, russian, PLAIN))

    def goal(self, noun: Noun | None) -> Phrase:
        """A place or a person that somebody moves to."""
        if noun is None:
            return self.oblique("to", self.name(Kind.TOWN, ACC, "в"))
        case, preposition = (ACC, noun.place[1]) if noun.place else (DAT, "к")
        return self.oblique("to", self.common(noun, case, preposition, MODIFIED))


def preposed(preposition: str, russian: str, node: Node) -> str:
    """Russian words after their preposition, if they have one; `node` is the head of the English phrase."""
    return attach(preposition, russian, node.case_sign) if preposition else russian


RELATIONS = (("near", "около", GEN), ("behind", "за", INS), ("by", "у", GEN), ("opposite", "напротив", GEN))

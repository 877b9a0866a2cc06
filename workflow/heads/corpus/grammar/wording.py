"""English phrases and clauses built to order, as trees: what `inference` writes its sentences with.

The clauses of `clauses` throw dice for all they say; here the caller decides, since a label hangs on every word.
Relations are those of Universal Dependencies, version 2. Every call makes new nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heads.corpus.grammar.english import Node, article, comma, leaf
from heads.corpus.grammar.lexicon import Noun, Verb

PARTICIPLES = {
    "break": "broken",
    "draw": "drawn",
    "drink": "drunk",
    "drive": "driven",
    "eat": "eaten",
    "forget": "forgotten",
    "hide": "hidden",
    "know": "known",
    "run": "run",
    "see": "seen",
    "steal": "stolen",
    "take": "taken",
    "wear": "worn",
    "write": "written",
}
"""Of the verbs with an object whose participle is not their past tense."""


@dataclass(frozen=True, slots=True)
class Being:
    """Somebody or something that sentences are about: a noun, or the name of a person where there is none."""

    noun: Noun | None
    name: str = ""

    @property
    def who(self) -> str:
        """The relative pronoun for it."""
        return "who" if self.noun is None or "person" in self.noun.classes else "that"

    def node(self, determiner: str = "the", **carried: str) -> Node:
        """The phrase; see `noun_phrase` for what it may carry. A name carries nothing."""
        if self.noun is None:
            return leaf(self.name, "PROPN", "")
        return noun_phrase(self.noun, determiner, **carried)


def noun_phrase(noun: Noun, determiner: str, *, quality: str = "", number: str = "") -> Node:
    """The red car; two cars, plural where `number` is given or `determiner` is empty."""
    many = bool(number) or not determiner
    if determiner == "a" and {"mass", "only"} & noun.classes:
        determiner = "the"
    node = Node(noun.plural if many else noun.singular, noun.singular, "NOUN", "")
    if quality:
        node.before.append(leaf(quality, "ADJ", "amod"))
    if number:
        node.before.insert(0, leaf(number, "NUM", "nummod"))
    elif determiner == "a":
        node.before.insert(0, Node(article((node.before or [node])[0].form), "a", "DET", "det"))
    elif determiner:
        node.before.insert(0, leaf(determiner, "DET", "det"))
    return node


def related(node: Node, relation: str, preposition: str = "") -> Node:
    """The phrase in its relation, behind a preposition if there is one."""
    node.relation = relation
    if preposition:
        node.before.insert(0, leaf(preposition, "ADP", "case"))
    return node


def doing(subject: Node | None, verb: Verb, rest: Sequence[Node], *, denied: bool = False, bare: bool = False) -> Node:
    """The boy slept; did not sleep if `denied`; the mere infinitive if `bare`. `rest` stands behind."""
    node = Node(verb.base if denied or bare else verb.english, verb.base, "VERB", "root")
    if subject:
        node.before.append(related(subject, "nsubj"))
    if denied:
        node.before += [Node("did", "do", "AUX", "aux"), leaf("not", "PART", "advmod")]
    node.after += rest
    return node


def with_object(verb: Verb, thing: Node) -> Node:
    """The object of a verb, in the relation that its preposition asks for."""
    assert verb.government is not None
    return related(thing, "obl" if verb.government.english else "obj", verb.government.english)


def undergoing(patient: Node, verb: Verb, agent: Node, *, denied: bool = False, many: bool = False) -> Node:
    """The book was read by the boy: only of a verb with a bare object."""
    node = Node(PARTICIPLES.get(verb.base, verb.english), verb.base, "VERB", "root")
    node.before += [related(patient, "nsubj:pass"), Node("were" if many else "was", "be", "AUX", "aux:pass")]
    if denied:
        node.before.append(leaf("not", "PART", "advmod"))
    node.after.append(related(agent, "obl", "by"))
    return node


def wishing(subject: Node, wish: Verb, inner: Node) -> Node:
    """The boy wanted to sleep; `inner` is a bare infinitive."""
    inner.relation = "xcomp"
    inner.before.insert(0, leaf("to", "PART", "mark"))
    return doing(subject, wish, [inner])


def saying(speaker: Node, verb: Verb, inner: Node) -> Node:
    """The boy said that the girl slept."""
    inner.relation = "ccomp"
    inner.before.insert(0, leaf("that", "SCONJ", "mark"))
    return doing(speaker, verb, [inner])


def being(subject: Node | None, quality: str, *, denied: bool = False) -> Node:
    """The car was red."""
    node = leaf(quality, "ADJ", "root")
    return _with_copula(subject, node, denied=denied)


def exceeding(subject: Node, quality: str, more: str, other: Node, *, denied: bool = False) -> Node:
    """The boy was older than the girl; `quality` is the lemma of the comparative `more`."""
    node = Node(more, quality, "ADJ", "root")
    node.after.append(related(other, "obl", "than"))
    return _with_copula(subject, node, denied=denied)


def _with_copula(subject: Node | None, node: Node, *, denied: bool) -> Node:
    if subject:
        node.before.append(related(subject, "nsubj"))
    node.before.append(Node("was", "be", "AUX", "cop"))
    if denied:
        node.before.append(leaf("not", "PART", "advmod"))
    return node


def with_relative(node: Node, who: str, clause: Node) -> Node:
    """The boy who slept; `clause` is one without a subject."""
    clause.relation = "acl:relcl"
    clause.before.insert(0, leaf(who, "PRON", "nsubj"))
    node.after.append(clause)
    return node


def joined(members: Sequence[Node], *, clauses: bool) -> Node:
    """Members of a row, the last behind "and", where they are clauses behind a comma too; the first is the head."""
    first, *others = members
    for number, other in enumerate(others, 1):
        other.relation = "conj"
        last = number == len(others)
        between = [comma()] if clauses or not last else []
        other.before[:0] = [*between, *([leaf("and", "CCONJ", "cc")] if last else [])]
        first.after.append(other)
    return first

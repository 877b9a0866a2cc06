"""Relative clauses: "который" has the gender and number of its noun, and the case of its role in its clause."""

from __future__ import annotations

from heads.corpus.grammar.clauses import RELATIVE, Clauses
from heads.corpus.grammar.english import Node, leaf
from heads.corpus.grammar.lexicon import Noun, Verb
from heads.corpus.grammar.phrases import PLAIN, Phrase, preposed
from heads.corpus.grammar.pronouns import WHICH
from heads.corpus.grammar.russian import DAT, LOC
from heads.corpus.grammar.signs import stands_for


class Relatives:
    """Writes relative clauses with the help of `clauses`; `agreement` is that of the noun before the clause."""

    def __init__(self, clauses: Clauses) -> None:
        self.clauses = clauses
        self.phrases = clauses.phrases
        self.lexicon = clauses.lexicon
        self.roll = clauses.roll

    def clause(self, noun: Noun, agreement: int) -> Phrase | None:
        """A relative clause for a noun, or None if the lexicon has none for it."""
        dice = self.roll()
        if noun.place and dice < 0.5:
            return self.place(noun, agreement)
        by, to = self.lexicon.done_by.get(noun.singular), self.lexicon.done_to.get(noun.singular)
        if by and (dice < 0.55 or not to):
            return self.subject(noun, agreement, by.draw(self.roll))
        return self.object(noun, agreement, to.draw(self.roll)) if to else None

    def _word(self, noun: Noun, relation: str, person: str) -> Node:
        thing = "that" if self.roll() < 0.5 else "which"
        return leaf(person if "person" in noun.classes else thing, "PRON", relation)

    def _which(self, noun: Noun, agreement: int, word: Node, case: int, preposition: str) -> str:
        return preposed(preposition, stands_for(WHICH[agreement][noun.animate][case], word), word)

    def subject(self, noun: Noun, agreement: int, verb: Verb) -> Phrase:
        """A relative clause like "who slept" in "the boy who slept"."""
        self.phrases.taken = ""
        if verb.kind == "turned":
            predicate = self.clauses.turned(verb, PLAIN)
        else:
            predicate = self.clauses.predicate(verb, agreement, RELATIVE, PLAIN)
        node = predicate.node
        node.relation = "acl:relcl"
        word = self._word(noun, "nsubj", "who")
        node.before.insert(0, word)
        which = self._which(noun, agreement, word, verb.subject.case, verb.subject.russian)
        return Phrase(node, f"{which} {predicate.russian}", agreement)

    def object(self, noun: Noun, agreement: int, verb: Verb) -> Phrase:
        """A relative clause like "that the boy read" or "about whom he thought"."""
        assert verb.government is not None
        subject = self.clauses.subject(verb, PLAIN)
        node = Node(verb.english, verb.base, "VERB", "acl:relcl")
        if verb.government.english:
            word = leaf("whom" if "person" in noun.classes else "which", "PRON", "obl")
            word.before.append(leaf(verb.government.english, "ADP", "case"))
        else:
            word = self._word(noun, "obj", "whom")
        node.before += [word, subject.node]
        russian = stands_for(verb.past[subject.agreement], node)
        if self.roll() < 0.2:
            russian = self.clauses.habit(verb, node, russian)
        if verb.kind == "give":
            whom = self.phrases.oblique("to", self.phrases.of_people(DAT, "", PLAIN))
            node.after.append(whom.node)
            russian += f" {whom.russian}"
        which = self._which(noun, agreement, word, verb.government.case, verb.government.russian)
        return Phrase(node, f"{which} {subject.russian} {russian}", agreement)

    def place(self, noun: Noun, agreement: int) -> Phrase:
        """A clause like "in which the boy slept"; the Russian verb comes first unless the subject is a pronoun."""
        assert noun.place is not None
        verb = self.clauses.done_somewhere()
        subject = self.clauses.subject(verb, PLAIN)
        node = Node(verb.english, verb.base, "VERB", "acl:relcl")
        word = leaf("which", "PRON", "obl")
        word.before.append(leaf(noun.place[0], "ADP", "case"))
        node.before += [word, subject.node]
        which = self._which(noun, agreement, word, LOC, noun.place[1])
        acted = stands_for(verb.past[subject.agreement], node)
        pronoun = subject.node.upos == "PRON"
        order = f"{subject.russian} {acted}" if pronoun else f"{acted} {subject.russian}"
        return Phrase(node, f"{which} {order}", agreement)

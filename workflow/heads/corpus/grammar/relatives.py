"""Relative clauses: "который" has the gender and number of its noun, and the case of its role in its clause."""

from __future__ import annotations

from heads.corpus.grammar.clauses import RELATIVE, Clauses
from heads.corpus.grammar.english import Node, leaf
from heads.corpus.grammar.lexicon import Verb
from heads.corpus.grammar.phrases import PLAIN, Head, Phrase, preposed
from heads.corpus.grammar.pronouns import WHICH
from heads.corpus.grammar.russian import DAT, LOC
from heads.corpus.grammar.signs import stands_for


class Relatives:
    """Writes relative clauses with the help of `clauses`."""

    def __init__(self, clauses: Clauses) -> None:
        self.clauses = clauses
        self.lexicon = clauses.lexicon
        self.roll = clauses.roll

    def clause(self, head: Head) -> Phrase | None:
        """A relative clause for a noun, or None if the lexicon has none for it."""
        name = head.noun.singular
        dice = self.roll()
        if head.noun.place and dice < 0.5:
            return self.place(head)
        by, to = self.lexicon.done_by.get(name), self.lexicon.done_to.get(name)
        if by and (dice < 0.55 or not to):
            return self.subject(head, by.draw(self.roll))
        return self.object(head, to.draw(self.roll)) if to else None

    def _word(self, head: Head, relation: str, person: str) -> Node:
        thing = "that" if self.roll() < 0.5 else "which"
        return leaf(person if "person" in head.noun.classes else thing, "PRON", relation)

    def _which(self, head: Head, word: Node, case: int, preposition: str) -> str:
        return preposed(preposition, stands_for(WHICH[head.agreement][head.noun.animate][case], word), word)

    def subject(self, head: Head, verb: Verb) -> Phrase:
        """A relative clause like "who slept" in "the boy who slept"."""
        self.clauses.phrases.taken = ""
        if verb.kind == "turned":
            predicate = self.clauses.turned(verb, PLAIN)
        else:
            predicate = self.clauses.predicate(verb, head.agreement, RELATIVE, PLAIN)
        node = predicate.node
        node.relation = "acl:relcl"
        word = self._word(head, "nsubj", "who")
        node.before.insert(0, word)
        which = self._which(head, word, verb.subject.case, verb.subject.russian)
        return Phrase(node, f"{which} {predicate.russian}", head.agreement)

    def object(self, head: Head, verb: Verb) -> Phrase:
        """A relative clause like "that the boy read" or "about whom he thought"."""
        assert verb.government is not None
        subject = self.clauses.subject(verb, PLAIN)
        node = Node(verb.english, verb.base, "VERB", "acl:relcl")
        if verb.government.english:
            word = leaf("whom" if "person" in head.noun.classes else "which", "PRON", "obl")
            word.before.append(leaf(verb.government.english, "ADP", "case"))
        else:
            word = self._word(head, "obj", "whom")
        node.before += [word, subject.node]
        russian = stands_for(verb.past[subject.agreement], node)
        if self.roll() < 0.2:
            russian = self.clauses.habit(verb, node, russian)
        if verb.kind == "give":
            whom = self.clauses.phrases.of_people(DAT, "", self.clauses.phrases.owners, PLAIN)
            node.after.append(self.clauses.phrases.oblique("to", whom).node)
            russian += f" {whom.russian}"
        which = self._which(head, word, verb.government.case, verb.government.russian)
        return Phrase(node, f"{which} {subject.russian} {russian}", head.agreement)

    def place(self, head: Head) -> Phrase:
        """A clause like "in which the boy slept"; the Russian verb comes first unless the subject is a pronoun."""
        assert head.noun.place is not None
        verb = self.clauses.done_somewhere()
        subject = self.clauses.subject(verb, PLAIN)
        node = Node(verb.english, verb.base, "VERB", "acl:relcl")
        word = leaf("which", "PRON", "obl")
        word.before.append(leaf(head.noun.place[0], "ADP", "case"))
        node.before += [word, subject.node]
        which = self._which(head, word, LOC, head.noun.place[1])
        acted = stands_for(verb.past[subject.agreement], node)
        pronoun = subject.node.upos == "PRON"
        order = f"{subject.russian} {acted}" if pronoun else f"{acted} {subject.russian}"
        return Phrase(node, f"{which} {order}", head.agreement)

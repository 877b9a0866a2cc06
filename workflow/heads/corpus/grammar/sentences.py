"""Whole sentences: one clause, or two that are joined or nested, in the Russian order of clauses. Relative clauses."""

from collections.abc import Callable

from heads.corpus.grammar.clauses import DEPENDENT, MAIN, RELATIVE, Clauses
from heads.corpus.grammar.lexicon import Noun, Verb, load
from heads.corpus.grammar.phrases import FULL, MODIFIED, PLAIN, Phrase, preposed
from heads.corpus.grammar.pronouns import WHICH
from heads.corpus.grammar.russian import DAT, LOC
from heads.corpus.grammar.words import Node, comma, leaf, stands_for

AND_OR_BUT = (("and", "и"), ("but", "но"))
SIMPLE, JOINED, FRONTED = 0.74, 0.82, 0.91  # cumulative shares; the rest has its dependent clause last

# English, Russian, part of speech, relation, side of the Russian clause compared with the English
SUBORDINATORS = (
    ("when", "когда", "ADV", "advmod", "other"),
    ("because", "потому что", "SCONJ", "mark", "last"),
    ("although", "хотя", "SCONJ", "mark", "same"),
    ("since", "поскольку", "SCONJ", "mark", "same"),
)


class Sentences:
    """Writes sentences; `roll` gives random numbers in [0, 1)."""

    def __init__(self, roll: Callable[[], float]) -> None:
        self.roll = roll
        self.clauses = Clauses(load(), roll)
        self.clauses.phrases.relative = Relatives(self.clauses).clause

    def sentence(self) -> tuple[Node, str]:
        """Root of the English tree (first word still in lower case), and the Russian sentence with its signs."""
        dice = self.roll()
        main = self.clauses.clause(MAIN, FULL if dice < SIMPLE else MODIFIED)
        russian = main.russian
        if SIMPLE <= dice < JOINED:
            russian = self._joined(main)
        elif dice >= JOINED and (dice < FRONTED or not main.closed):
            russian = self._with_clause(main, fronted=dice < FRONTED)
        stop = leaf(".", "PUNCT", "punct")
        main.node.after.append(stop)
        return main.node, finish(russian) + stands_for(".", stop)

    def _joined(self, main: Phrase) -> str:
        other = self.clauses.clause(MAIN, MODIFIED)
        english, russian = AND_OR_BUT[self.roll() < 0.45]
        other.node.relation = "conj"
        between = [comma(), leaf(english, "CCONJ", "cc")]
        other.node.before[:0] = between
        main.node.after.append(other.node)
        joined = " ".join(stands_for(*pair) for pair in zip((",", russian), between, strict=True))
        return f"{main.russian} {joined} {other.russian}"

    def _with_clause(self, main: Phrase, *, fronted: bool) -> str:
        """Add a clause of time, reason or concession; "when" changes sides in Russian, "because" is always last."""
        english, russian, upos, relation, russian_place = SUBORDINATORS[int(self.roll() ** 1.5 * len(SUBORDINATORS))]
        inner = self.clauses.clause(DEPENDENT, MODIFIED)
        inner.node.relation = "advcl"
        word = leaf(english, upos, relation)
        inner.node.before.insert(0, word)
        between = ","
        if fronted:
            inner.node.after.append(comma())
            between = stands_for(",", inner.node.after[-1])
            main.node.before.insert(0, inner.node)
        else:
            main.node.after.append(inner.node)
        first = {"last": False, "same": fronted, "other": not fronted}[russian_place]
        clause = f"{stands_for(russian, word)} {inner.russian}"
        return f"{clause} {between} {main.russian}" if first else f"{main.russian} {between} {clause}"


def finish(russian: str) -> str:
    """Remove spaces before commas and superfluous commas, and capitalise."""
    text = russian.replace(" ,", ",").replace(",,", ",").rstrip(",")
    return text[0].upper() + text[1:]


class Relatives:
    """Writes relative clauses with the help of `clauses`; `agreement` is that of the noun before the clause.

    "Который" has the gender and number of that noun, and the case of its role in its clause.
    """

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

"""Whole sentences: one clause, or two that are joined or nested, with the Russian order of clauses."""

from __future__ import annotations

from collections.abc import Callable

from heads.corpus.grammar.clauses import DEPENDENT, MAIN, Clauses
from heads.corpus.grammar.english import Node, comma, leaf
from heads.corpus.grammar.lexicon import load
from heads.corpus.grammar.phrases import FULL, MODIFIED, Phrase
from heads.corpus.grammar.relatives import Relatives
from heads.corpus.grammar.signs import stands_for

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
        if dice < SIMPLE:
            pass
        elif dice < JOINED:
            russian = self._joined(main)
        elif dice < FRONTED or not main.closed:
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

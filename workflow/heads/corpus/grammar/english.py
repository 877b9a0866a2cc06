"""English words as nodes of an ordered tree, and the dependency tree and text derived from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle

from heads.syntax.conllu import Sentence, place

WORD_SIGNS, CASE_SIGNS, NUMBERS = 0xE000, 0xF000, 2304
"""The first Unicode code points of the signs of words and of prepositions, and the number of each."""
NEXT = cycle(range(NUMBERS))


@dataclass(eq=False, slots=True)
class Node:
    """A word with its dependents before and after it; `relation` is the one to its head.

    `number` distinguishes it from the other words of its sentence, see `heads.corpus.grammar.signs`.
    """

    form: str
    lemma: str
    upos: str
    relation: str
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)
    number: int = field(default_factory=NEXT.__next__)

    @property
    def case_sign(self) -> str:
        """The sign of a Russian preposition that stands for the preposition of this word, if it has one."""
        return chr(CASE_SIGNS + self.number)


def leaf(form: str, upos: str, relation: str) -> Node:
    """A word that is its own lemma."""
    return Node(form, form, upos, relation)


def comma() -> Node:
    """A comma."""
    return Node(",", ",", "PUNCT", "punct")


def in_order(node: Node) -> list[Node]:
    """The words of the subtree of `node` in reading order."""
    if not node.before and not node.after:  # as most are
        return [node]
    before = [word for child in node.before for word in in_order(child)]
    return [*before, node, *(word for child in node.after for word in in_order(child))]


def article(following: str) -> str:
    """The indefinite article before the word `following`."""
    vowel = following[0] in "aeiou" and following not in ("university", "universities")
    return "an" if vowel or following == "honest" else "a"


def surface(words: Sequence[Node]) -> str:
    """Text of the words, with punctuation and possessive endings attached to the word before."""
    text = " ".join([word.form for word in words])
    text = text.replace(" ,", ",").replace(" 's", "'s").replace(" .", ".")
    return text[0].upper() + text[1:]


def tree(words: Sequence[Node]) -> Sentence:
    """The dependency tree over the words of a sentence in reading order."""
    head = {child: index for index, word in enumerate(words, start=1) for child in (*word.before, *word.after)}
    rows = []
    for index, word in enumerate(words):
        glued = index + 1 < len(words) and words[index + 1].form in (",", ".", "'s")
        form = word.form[0].upper() + word.form[1:] if index == 0 else word.form
        rows.append((form, word.lemma, word.upos, head.get(word, 0), word.relation, not glued))
    return place(rows)

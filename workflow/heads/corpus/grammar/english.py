"""English words as nodes of an ordered tree, and the dependency tree and text derived from it."""

from __future__ import annotations

from itertools import cycle

from heads.syntax.conllu import Sentence, place

WORD_SIGNS, CASE_SIGNS, NUMBERS = 0xE000, 0xF000, 2304
"""The first Unicode code points of the signs of words and of prepositions, and the number of each."""
NEXT = cycle(range(NUMBERS))


class Node:
    """A word with its dependents before and after it; `relation` is the one to its head.

    `number` distinguishes it from the other words of its sentence, see `heads.corpus.grammar.signs`.
    """

    __slots__ = ("after", "before", "form", "lemma", "number", "relation", "space_after", "upos")

    def __init__(self, form: str, lemma: str, upos: str, relation: str) -> None:
        self.form = form
        self.lemma = lemma
        self.upos = upos
        self.relation = relation
        self.before: list[Node] = []
        self.after: list[Node] = []
        self.space_after = True
        self.number = next(NEXT)

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


def in_order(node: Node, words: list[Node]) -> None:
    """Append the words of the subtree of `node` to `words` in reading order."""
    for child in node.before:
        if child.before or child.after:
            in_order(child, words)
        else:
            words.append(child)
    words.append(node)
    for child in node.after:
        if child.before or child.after:
            in_order(child, words)
        else:
            words.append(child)


def article(following: str) -> str:
    """The indefinite article before the word `following`."""
    if following in ("university", "universities"):
        return "a"
    return "an" if following[0] in "aeiou" or following == "honest" else "a"


def surface(words: list[Node]) -> str:
    """Text of the words, with punctuation and possessive endings attached to the word before."""
    text = " ".join([word.form for word in words])
    text = text.replace(" ,", ",").replace(" 's", "'s").replace(" .", ".")
    return text[0].upper() + text[1:]


def tree(root: Node, words: list[Node]) -> Sentence:
    """The dependency tree over `words`, the words under `root` in reading order."""
    number = {id(word): index for index, word in enumerate(words, start=1)}
    head = {id(root): 0}
    for word in words:
        for child in (*word.before, *word.after):
            head[id(child)] = number[id(word)]
    rows = []
    for index, word in enumerate(words):
        glued = index + 1 < len(words) and words[index + 1].form in (",", ".", "'s")
        form = word.form[0].upper() + word.form[1:] if index == 0 else word.form
        rows.append((form, word.lemma, word.upos, head[id(word)], word.relation, not glued))
    return place(rows)

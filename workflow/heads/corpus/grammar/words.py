"""English words as nodes of an ordered tree, its text and its dependency tree, and the Russian words linked with them.

Each Russian word is followed by signs of the English words that it stands for, until the sentence is whole. The
following is linked, and every link is a sure one in the sense of Och and Ney (2003, sec. 4):

- A Russian word with the English words whose meaning it carries: a noun with its noun and not with the adjectives or
  verbs that agree with it, "который" with "who", a word in the sense it has here, "каменный" with the "stone" of
  "stone house".
- A word with several where it takes several to say the same: a verb form with the auxiliary or copula and the verb of
  "did not sleep" (не спал; "не" with "not") and "was afraid" (боялся); both words of "потому что" with "because".
- A preposition with the preposition of the same phrase, a comma with the comma between the same two parts, one full
  stop with the other.

A word for which the other language has only grammar is not linked: "a" and "the", "of", "'s" and
"to" where Russian has a case or an infinitive, "there" of "there was", Russian prepositions where the English verb has
a bare object or subject (took a bus: сел на автобус; had: у ... была), commas before "что" and "который".

A sign is a character of Unicode's private use area, put after the Russian word. No rule of Russian looks that far into
a word, so the text is the same once the signs are removed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle

from heads.syntax.conllu import Sentence, place

WORD_SIGNS, CASE_SIGNS, NUMBERS = 0xE000, 0xF000, 2304
"""The first Unicode code points of the signs of words and of prepositions, and the number of each."""
NEXT = cycle(range(NUMBERS))
SIGNS = re.compile(f"[{chr(WORD_SIGNS)}-{chr(CASE_SIGNS + NUMBERS - 1)}]")
SIGNED = re.compile(f"(?:\\w+|[^\\w\\s])({SIGNS.pattern}*)")

Links = tuple[tuple[int, int], ...]
"""Positions of the English and the Russian word of each link, from 0; punctuation marks count as words."""


@dataclass(eq=False, slots=True)
class Node:
    """A word with its dependents before and after it, its `relation` to its head, and a `number` of its own."""

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


def stands_for(russian: str, *english: Node) -> str:
    """Russian words, each followed by the signs of all these English words."""
    signs = "".join([chr(WORD_SIGNS + word.number) for word in english])
    return russian.replace(" ", f"{signs} ") + signs


def without_signs(russian: str) -> str:
    """The Russian text without its signs."""
    return SIGNS.sub("", russian)


def links_of(words: Sequence[Node], russian: str) -> Links:
    """The links of a Russian sentence with its signs, sorted as in Pharaoh files; `words` are the English ones."""
    place = {word.number: index for index, word in enumerate(words)}
    found = set()
    for target, signed in enumerate(SIGNED.finditer(russian)):
        for sign in map(ord, signed[1]):
            if sign < CASE_SIGNS:
                found.add((place[sign - WORD_SIGNS], target))
            else:
                noun = words[place[sign - CASE_SIGNS]]
                found |= {(place[word.number], target) for word in noun.before if word.upos == "ADP"}
    return tuple(sorted(found))

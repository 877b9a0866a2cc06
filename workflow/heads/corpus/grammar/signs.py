"""The English words that each Russian word stands for: first as signs in the Russian text, then as links.

The following is linked, and every link is a sure one in the sense of Och and Ney (2003, sec. 4):

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

from heads.corpus.grammar.english import CASE_SIGNS, NUMBERS, WORD_SIGNS, Node

SIGNS = re.compile(f"[{chr(WORD_SIGNS)}-{chr(CASE_SIGNS + NUMBERS - 1)}]")
SIGNED = re.compile(f"(?:\\w+|[^\\w\\s])({SIGNS.pattern}*)")

Links = tuple[tuple[int, int], ...]
"""Positions of the English and the Russian word of each link, from 0; punctuation marks count as words."""


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

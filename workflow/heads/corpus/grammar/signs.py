"""Which English words a Russian word stands for: signs in the Russian text while it is written, links in the end.

What is linked, and every link is a sure one in the sense of Och and Ney (2003, sec. 4):

- A Russian word with the English words whose meaning it carries: a noun with its noun and not with the adjectives or
  verbs that agree with it, "который" with "who", a word in the sense it has here, "каменный" with the "stone" of
  "stone house".
- One with several where it takes several to say it: a verb form with the auxiliary or copula and the verb of "did not
  sleep" (не спал; "не" with "not") and "was afraid" (боялся); both words of "потому что" with "because".
- A preposition with the preposition of the same phrase, a comma with the comma between the same two parts, one full
  stop with the other.

What one language says by a word and the other by grammar alone is linked with nothing: "a" and "the", "of", "'s" and
"to" where Russian has a case or an infinitive, "there" of "there was", Russian prepositions where the English verb has
a bare object or subject (took a bus: сел на автобус; had: у ... была), commas before "что" and "который".

A sign is a character of Unicode's private use, put behind the Russian word. No rule of Russian looks that far into a
word, so that the text is the same with the signs taken off.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from heads.corpus.grammar.english import CASE_SIGNS, NUMBERS, WORD_SIGNS, Node

SIGNS = re.compile(f"[{chr(WORD_SIGNS)}-{chr(CASE_SIGNS + NUMBERS - 1)}]")
SIGNED = re.compile(f"(?:\\w+|[^\\w\\s])({SIGNS.pattern}*)")

Links = tuple[tuple[int, int], ...]
"""English and Russian word of each link, counted from 0 with punctuation marks as words of their own."""


def stands_for(russian: str, *english: Node) -> str:
    """Russian words, each with the signs of all these English ones behind it."""
    signs = "".join([chr(WORD_SIGNS + word.number) for word in english])
    return russian.replace(" ", f"{signs} ") + signs


def without_signs(russian: str) -> str:
    """The text as it is to be read."""
    return SIGNS.sub("", russian)


def links_of(words: Sequence[Node], russian: str) -> Links:
    """The links of a Russian sentence with its signs, in the order of Pharaoh files; `words` are the English ones."""
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

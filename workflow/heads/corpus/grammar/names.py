"""An open set of proper names, built from syllables, with their Russian spelling and declension.

The ending shows the kind: men's names end in a consonant, women's in -a, towns in -burg, -grad or -ton. Men and towns
decline like hard masculine nouns, women like nouns in -а. Rank r is drawn with a chance proportional to about 1/r.
"""

from collections.abc import Callable
from enum import Enum

from heads.corpus.grammar.russian import decline_singular

ONSETS = ("b", "d", "k", "m", "l", "r", "t", "v", "s", "g", "n", "z", "p", "f", "br", "dr", "gr", "tr", "sh", "ch")
VOWELS = ("a", "o", "i", "e", "u")
MIDDLES = ("l", "r", "n", "lk", "rd", "m", "nd", "v", "st", "rg", "lm", "nt", "rv", "sh")
FINALS = ("r", "n", "s", "l", "m", "t", "d", "v", "k", "sh")
TOWNS = ("burg", "grad", "ton")

LETTERS = str.maketrans("abdefgiklmnoprstuvz", "абдефгиклмнопрстувз")

PEOPLE = len(ONSETS) * len(VOWELS) * len(MIDDLES) * len(VOWELS) * len(FINALS)
PLACES = len(ONSETS) * len(VOWELS) * len(FINALS) * len(TOWNS)
STRIDE = 34_319  # coprime to both counts: spreads neighbouring ranks over the syllables


class Kind(Enum):
    """The kind of a name, with the code of its declension."""

    MAN = "ma"
    WOMAN = "fa"
    TOWN = "m"


def spell(rank: int, kind: Kind) -> str:
    """The English name of rank `rank` (from 0), capitalised; different ranks below the count give different names."""
    number = rank * STRIDE % (PLACES if kind is Kind.TOWN else PEOPLE)
    number, final = divmod(number, len(FINALS))
    number, vowel = divmod(number, len(VOWELS))
    if kind is Kind.TOWN:
        ending, onset = divmod(number, len(ONSETS))
        return (ONSETS[onset] + VOWELS[vowel] + FINALS[final] + TOWNS[ending]).capitalize()
    number, middle = divmod(number, len(MIDDLES))
    onset, first = divmod(number, len(VOWELS))
    name = ONSETS[onset] + VOWELS[first] + MIDDLES[middle] + VOWELS[vowel] + FINALS[final]
    return (name + "a" if kind is Kind.WOMAN else name).capitalize()


def transliterate(name: str) -> str:
    """The name in Cyrillic, letter by letter, with sh and ch as one letter each."""
    return name.lower().replace("sh", "ш").replace("ch", "ч").translate(LETTERS).capitalize()


def decline_name(name: str, kind: Kind) -> list[str]:
    """Six Russian case forms of an English name."""
    return decline_singular(transliterate(name), kind.value, {})


def draw_name(roll: Callable[[], float], kind: Kind) -> str:
    """A name drawn by Zipf's law: the logarithm of its rank is uniform."""
    count = PLACES if kind is Kind.TOWN else PEOPLE
    return spell(int(count ** roll()) - 1, kind)

"""Russian inflection: nouns, adjectives, past tense, prepositions that change their form.

Cases are indices into tuples of seven forms; LOC is the case of place after "в" and "на" (в саду), mostly as PRE.
Agreement is an index too: 0 masculine, 1 feminine, 2 neuter, 3 plural. The rules follow the school grammar (Wade, A
Comprehensive Russian Grammar, chapters 3 to 5); what they do not cover is listed as an exception in the tables.
"""

from collections.abc import Mapping, Sequence

NOM, GEN, DAT, ACC, INS, PRE, LOC = range(7)
CASES = {"nom": NOM, "gen": GEN, "dat": DAT, "acc": ACC, "ins": INS, "pre": PRE, "loc": LOC}
MASCULINE, FEMININE, NEUTER, PLURAL = range(4)

Forms = tuple[str, ...]
Agreeing = tuple[tuple[Forms, Forms], ...]
"""Forms as [agreement][animate][case]."""

HUSHING = "жшчщ"
NO_Y = "гкхжшчщ"
VOWELS = "аеёиоуыэюя"


def y_or_i(stem: str) -> str:
    """The ending -ы, which is spelled -и after velars and hushing consonants."""
    return "и" if stem[-1] in NO_Y else "ы"


def decline(nominative: str, code: str, exceptions: Mapping[str, str]) -> tuple[Forms, Forms]:
    """Singular and plural forms (seven each) of a noun.

    `code` is m, f or n for the gender, with "a" for animate and "0" for a noun that never changes. Exceptions: `s` stem
    of the oblique cases, `e` the stressed ending of the instrumental (ом, ём, ой, ёй), `np` `gp` `ip` nominative,
    genitive, instrumental plural, `loc` the place case, `sg` and `pl` whole series of six forms with slashes.
    """
    if "0" in code:
        return (nominative,) * 7, (nominative,) * 7
    singular = exceptions["sg"].split("/") if "sg" in exceptions else decline_singular(nominative, code, exceptions)
    plural = exceptions["pl"].split("/") if "pl" in exceptions else _plural(nominative, code, exceptions)
    return (*singular, exceptions.get("loc", singular[PRE])), (*plural, plural[PRE])


def decline_singular(nominative: str, code: str, exceptions: Mapping[str, str]) -> list[str]:
    """Six singular forms; arguments as for `decline`."""
    last, stem = nominative[-1], exceptions.get("s", nominative[:-1])
    if last in "ая":
        i = "и" if last == "я" else y_or_i(stem)
        prepositional = "и" if stem.endswith("и") else "е"
        u = "у" if last == "а" else "ю"
        instrumental = exceptions.get("e", "ей" if last == "я" or stem[-1] in HUSHING + "ц" else "ой")
        return [nominative, *(stem + ending for ending in (i, prepositional, u, instrumental, prepositional))]
    if last == "ь" and "f" in code:
        return [nominative, stem + "и", stem + "и", nominative, stem + "ью", stem + "и"]
    if last in "ое":
        hard = last == "о" or stem[-1] in HUSHING + "ц"
        prepositional = "и" if stem.endswith("и") else "е"
        a, u, instrumental = ("а", "у", last + "м") if hard else ("я", "ю", "ем")
        return [nominative, stem + a, stem + u, nominative, stem + instrumental, stem + prepositional]
    if last in "ьй":
        endings = ("я", "ю", exceptions.get("e", "ем"), "и" if stem.endswith("и") else "е")
    else:
        stem = exceptions.get("s", nominative)
        endings = ("а", "у", exceptions.get("e", "ем" if stem[-1] in HUSHING + "ц" else "ом"), "е")
    genitive, dative, instrumental, prepositional = (stem + ending for ending in endings)
    return [nominative, genitive, dative, genitive if "a" in code else nominative, instrumental, prepositional]


def _plural(nominative: str, code: str, exceptions: Mapping[str, str]) -> list[str]:
    last, stem = nominative[-1], exceptions.get("s", nominative[:-1])
    if last not in "аяьйое":
        stem = exceptions.get("s", nominative)
        many = stem + _hard_many(stem, stressed="e" in exceptions)
        first = stem + y_or_i(stem)
    elif last in "оа":
        first, many = stem + ("а" if last == "о" else y_or_i(stem)), stem
    elif last == "е":
        first, many = stem + "я", stem + ("й" if stem.endswith("и") else "ей")
        if stem[-1] in HUSHING + "ц":
            first, many = stem + "а", stem
    elif last == "я":
        first, many = stem + "и", stem + ("й" if stem[-1] in VOWELS else "ь")
    elif last == "й":
        first, many = stem + "и", stem + "ев"
    else:
        first, many = stem + "и", stem + "ей"
    first, many = exceptions.get("np", first), exceptions.get("gp", many)
    base, end = first[:-1], first[-1]
    soft = end == "я" or (end == "и" and base[-1] not in NO_Y)
    a = "я" if soft else "а"
    instrumental = exceptions.get("ip", base + a + "ми")
    return [first, many, base + a + "м", many if "a" in code else first, instrumental, base + a + "х"]


def _hard_many(stem: str, *, stressed: bool) -> str:
    if stem[-1] in HUSHING:
        return "ей"
    return "ев" if stem[-1] == "ц" and not stressed else "ов"


def decline_adjective(nominative: str) -> Agreeing:
    """Forms of an adjective in -ый, -ий or -ой."""
    stem, ending = nominative[:-2], nominative[-2:]
    soft = ending == "ий" and stem[-1] not in NO_Y
    i = "и" if soft or stem[-1] in NO_Y else "ы"
    o = "е" if soft or (ending != "ой" and stem[-1] in HUSHING) else "о"
    u, a = ("ю", "я") if soft else ("у", "а")
    genitive, dative, locative = stem + o + "го", stem + o + "му", stem + o + "м"
    he = [nominative, genitive, dative, nominative, stem + i + "м", locative, locative]
    she_oblique = stem + o + "й"
    she = [stem + a + "я", she_oblique, she_oblique, stem + u + "ю", *[she_oblique] * 3]
    it_nominative = stem + o + "е"
    it = [it_nominative, genitive, dative, it_nominative, *he[INS:]]
    many, them = stem + i + "х", stem + i + "е"
    they = [them, many, stem + i + "м", them, stem + i + "ми", many, many]
    return agreeing(he, she, it, they)


def agreeing(he: Sequence[str], she: Sequence[str], it: Sequence[str], they: Sequence[str]) -> Agreeing:
    """All forms from those for inanimate nouns; for animate ones the masculine and plural accusatives are genitives."""
    he_animate, they_animate = ((*forms[:ACC], forms[GEN], *forms[INS:]) for forms in (he, they))
    pairs = (he, he_animate), (she, she), (it, it), (they, they_animate)
    return tuple((tuple(inanimate), tuple(animate)) for inanimate, animate in pairs)


def past_forms(table: str) -> Forms:
    """Masculine, feminine, neuter and plural of a past tense, from "сказал", "пришёл/пришла" or all four."""
    if table.count("/") == 3:
        return tuple(table.split("/"))
    he, _, she = table.partition("/")
    reflexive = he.endswith(("лся", "гся", "зся"))
    if not she:
        she = he[:-2] + "ась" if reflexive else he + "а"
    cut = 3 if reflexive else 1
    tail = "сь" if reflexive else ""
    return he, she, she[:-cut] + "о" + tail, she[:-cut] + "и" + tail


def attach(preposition: str, phrase: str, sign: str = "") -> str:
    """Put a preposition, followed by `sign`, before a phrase in the form its first sounds require: во, со, об, ко."""
    first, second = phrase[0].lower(), phrase[1:2].lower()
    consonant = bool(second) and second not in VOWELS + "ьъй"
    start = phrase[:4].lower()
    to_me = start[:3] in ("мне", "мно")
    if preposition == "в" and (to_me or start == "двор" or (first in "вф" and consonant)):
        preposition = "во"
    elif preposition == "с" and (
        to_me or first == "щ" or (first in "сзшж" and consonant) or start[:3] in ("льв", "вто")
    ):
        preposition = "со"
    elif preposition == "о" and (to_me or start[:3] == "мне"):
        preposition = "обо"
    elif preposition == "о" and first in "аэиоу":
        preposition = "об"
    elif preposition in ("к", "над", "под", "перед") and (
        to_me or (preposition == "к" and start[:3] in ("льв", "вто"))
    ):
        preposition += "о"
    return f"{preposition}{sign} {phrase}"

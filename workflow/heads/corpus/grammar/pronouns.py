"""Personal pronouns and determiners: closed classes with full paradigms."""

from __future__ import annotations

from dataclasses import dataclass

from heads.corpus.grammar.russian import MASCULINE, PLURAL, Forms, decline_adjective


@dataclass(frozen=True, slots=True)
class Pronoun:
    """English subject and object form; Russian cases, plain and after a preposition; agreement of the past tense."""

    subject: str
    object: str
    plain: Forms
    after_preposition: Forms
    agreement: int


def _pronoun(subject: str, other: str, plain: str, after: str, agreement: int) -> Pronoun:
    return Pronoun(subject, other, tuple(plain.split()), tuple(after.split()), agreement)


PRONOUNS = (
    _pronoun("he", "him", "он его ему его им нём", "он него нему него ним нём", MASCULINE),
    _pronoun("she", "her", "она её ей её ей ней", "она неё ней неё ней ней", 1),
    _pronoun("they", "them", "они их им их ими них", "они них ним них ними них", PLURAL),
    _pronoun("I", "me", "я меня мне меня мной мне", "я меня мне меня мной мне", MASCULINE),
    _pronoun("we", "us", "мы нас нам нас нами нас", "мы нас нам нас нами нас", PLURAL),
    _pronoun("you", "you", "вы вас вам вас вами вас", "вы вас вам вас вами вас", PLURAL),
)

Agreeing = tuple[tuple[Forms, Forms], ...]


def _paradigm(he: str, she: str, it: str, they: str) -> Agreeing:
    """Forms as [agreement][animate][case], from rows of cases without the accusative where it follows animacy."""
    he_forms, she_forms, it_forms, they_forms = (row.split() for row in (he, she, it, they))
    rows = []
    for forms in (he_forms, it_forms, they_forms):
        nominative, genitive, dative, instrumental, prepositional = forms
        tail = (instrumental, prepositional, prepositional)
        rows.append(
            (
                (nominative, genitive, dative, nominative, *tail),
                (nominative, genitive, dative, genitive, *tail),
            )
        )
    feminine = (*she_forms, she_forms[-1])
    neuter = (rows[1][0], rows[1][0])
    return rows[0], (feminine, feminine), neuter, rows[2]


THIS = _paradigm(
    "этот этого этому этим этом",
    "эта этой этой эту этой этой",
    "это этого этому этим этом",
    "эти этих этим этими этих",
)
THAT = _paradigm("тот того тому тем том", "та той той ту той той", "то того тому тем том", "те тех тем теми тех")
MY = _paradigm(
    "мой моего моему моим моём",
    "моя моей моей мою моей моей",
    "моё моего моему моим моём",
    "мои моих моим моими моих",
)
OUR = _paradigm(
    "наш нашего нашему нашим нашем",
    "наша нашей нашей нашу нашей нашей",
    "наше нашего нашему нашим нашем",
    "наши наших нашим нашими наших",
)
WHICH = decline_adjective("который")
EVERY = decline_adjective("каждый")
SOME = decline_adjective("некоторый")
ANOTHER = decline_adjective("другой")


def unchanging(word: str) -> Agreeing:
    """A determiner that never changes (его, их)."""
    return (((word,) * 7,) * 2,) * 4


# English singular and plural ("" where there is none), Russian forms
DEMONSTRATIVES = (
    ("this", "these", THIS),
    ("that", "those", THAT),
    ("every", "", EVERY),
    ("", "some", SOME),
    ("another", "", ANOTHER),
)
POSSESSIVES = (("my", MY), ("our", OUR), ("his", unchanging("его")), ("their", unchanging("их")))

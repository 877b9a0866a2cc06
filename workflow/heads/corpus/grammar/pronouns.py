"""Personal pronouns and determiners: closed classes with full paradigms."""

from dataclasses import dataclass

from heads.corpus.grammar.russian import FEMININE, MASCULINE, PLURAL, Agreeing, Forms, agreeing, decline_adjective


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
    _pronoun("she", "her", "она её ей её ей ней", "она неё ней неё ней ней", FEMININE),
    _pronoun("they", "them", "они их им их ими них", "они них ним них ними них", PLURAL),
    _pronoun("I", "me", "я меня мне меня мной мне", "я меня мне меня мной мне", MASCULINE),
    _pronoun("we", "us", "мы нас нам нас нами нас", "мы нас нам нас нами нас", PLURAL),
    _pronoun("you", "you", "вы вас вам вас вами вас", "вы вас вам вас вами вас", PLURAL),
)


def _paradigm(*table: str) -> Agreeing:
    """All forms, from the six cases of masculine, feminine, neuter and plural before inanimate nouns."""
    he, she, it, they = ([*row.split(), row.split()[-1]] for row in table)
    return agreeing(he, she, it, they)


THIS = _paradigm(
    "этот этого этому этот этим этом",
    "эта этой этой эту этой этой",
    "это этого этому это этим этом",
    "эти этих этим эти этими этих",
)
THAT = _paradigm(
    "тот того тому тот тем том",
    "та той той ту той той",
    "то того тому то тем том",
    "те тех тем те теми тех",
)
MY = _paradigm(
    "мой моего моему мой моим моём",
    "моя моей моей мою моей моей",
    "моё моего моему моё моим моём",
    "мои моих моим мои моими моих",
)
OUR = _paradigm(
    "наш нашего нашему наш нашим нашем",
    "наша нашей нашей нашу нашей нашей",
    "наше нашего нашему наше нашим нашем",
    "наши наших нашим наши нашими наших",
)
HIS, THEIR = ((((word,) * 7,) * 2,) * 4 for word in ("его", "их"))  # they never change
WHICH = decline_adjective("который")

# English singular and plural ("" where there is none), Russian forms
DEMONSTRATIVES = (
    ("this", "these", THIS),
    ("that", "those", THAT),
    ("every", "", decline_adjective("каждый")),
    ("", "some", decline_adjective("некоторый")),
    ("another", "", decline_adjective("другой")),
)
POSSESSIVES = (("my", MY), ("our", OUR), ("his", HIS), ("their", THEIR))

"""Agreement of parsed trees with gold trees over the same words: attachment scores and an F1 for each relation.

As in the CoNLL 2018 shared task (Zeman et al. 2018), every word counts, including punctuation, and subtypes of
relations are ignored, so `nmod:poss` is `nmod`. The words are given, so precision and recall of UAS and LAS are equal.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from heads.base.files import UserError
from heads.syntax.conllu import Sentence, Token

ATTACHMENT_COLUMNS = ("measure", "relation", "gold", "parsed", "correct", "precision", "recall", "f1")

Row = dict[str, Any]


def main_relation(token: Token) -> str:
    """The universal relation of a word, without its subtype."""
    return token.relation.partition(":")[0]


def attachment_rows(gold: Iterable[Sentence], parsed: Iterable[Sentence]) -> list[Row]:
    """Rows of `ATTACHMENT_COLUMNS`: UPOS (tags), UAS (heads), LAS (heads and relations), then one for each relation.

    A word of a relation is correct if its head and its relation are. Relations are sorted by decreasing gold count.
    Raises UserError if the words differ.
    """
    overall: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    given: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for one, other in _word_pairs(gold, parsed):
        relation = main_relation(one)
        same_head = one.head == other.head
        same = same_head and relation == main_relation(other)
        overall.update(words=1, UPOS=one.upos == other.upos, UAS=same_head, LAS=same)
        wanted[relation] += 1
        given[main_relation(other)] += 1
        right[relation] += same
    words = overall["words"]
    rows = [_row(measure, "", words, words, overall[measure]) for measure in ("UPOS", "UAS", "LAS")]
    relations = sorted(wanted | given, key=lambda name: (-wanted[name], name))
    return rows + [_row("relation", name, wanted[name], given[name], right[name]) for name in relations]


def _word_pairs(gold: Iterable[Sentence], parsed: Iterable[Sentence]) -> Iterator[tuple[Token, Token]]:
    gold, parsed = list(gold), list(parsed)
    if len(gold) != len(parsed):
        raise UserError(f"{len(parsed)} parsed sentences do not match {len(gold)} gold ones: parse the same sentences.")
    for number, (one, other) in enumerate(zip(gold, parsed, strict=True), 1):
        if [token.form for token in one] != [token.form for token in other]:
            raise UserError(
                f"Sentence {number} differs in its words between the parse and the gold tree: parse the gold words."
            )
        yield from zip(one, other, strict=True)


def _row(measure: str, relation: str, gold: int, parsed: int, correct: int) -> Row:
    precision = correct / parsed if parsed else None
    recall = correct / gold if gold else None
    f1 = 2 * correct / (gold + parsed) if gold + parsed else None
    return dict(zip(ATTACHMENT_COLUMNS, (measure, relation, gold, parsed, correct, precision, recall, f1), strict=True))

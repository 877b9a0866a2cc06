"""Split English text into words as in Universal Dependencies, for text without a treebank.

A small set of rules: punctuation is separate, clitics ("n't", "'s", "cannot") are split from their word; numbers,
abbreviations with inner full stops, addresses and words with hyphens stay whole. No word is changed, so words and
spaces give the text back. In a script without blanks between words, such as Chinese, each letter is a word.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from heads.base.files import UserError, read_lines
from heads.base.scripts import NOT_SPACED, UNSPACED, UNSPACED_LETTER, script_of
from heads.syntax.conllu import Sentence, Word, place

APOSTROPHE = "['’]"
UNPARSED = ("_", "X", 0, "dep")
"""Lemma, tag, head and relation of a word before it is parsed."""

SPACED = rf"(?:(?![{NOT_SPACED}])\w)"
TOKEN = re.compile(
    rf"""
    (?:https?://|www\.)\S*[^\s.,;:!?)\]}}"'»”’]      # an address, without the punctuation behind it
    | [\w.+-]+@\w[\w-]*(?:\.\w[\w-]*)+               # a mail address
    | (?:[^\W\d_]\.){{2,}}                           # U.S.
    | (?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc)\.        # an abbreviation keeps its stop
    | \d+(?:[.,:/]\d+)*(?:st|nd|rd|th|s|am|pm)?\b    # 3,000.50  12:30  20th  1990s
    | {SPACED}+(?:-{SPACED}+)*                        # a word; hyphens are inside it
    | {APOSTROPHE}(?:s|re|ve|ll|d|m|em)\b            # a clitic
    | ([.!?*_=-])\1+                                 # ... and --
    | \S
    """,
    re.VERBOSE | re.IGNORECASE,
)
NEGATED = re.compile(rf"(\w+)(n{APOSTROPHE}t)\b", re.IGNORECASE)
CANNOT = re.compile(r"(can)(not)\b", re.IGNORECASE)


def words_of_text(line: str) -> Sentence:
    """Split one line into words, each with its spacing; heads are 0 and relations `dep` until it is parsed."""
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(line):
        if line[start].isspace():
            start += 1
            continue
        if UNSPACED_LETTER.match(line, start):
            end = start + 1
            while end < len(line) and unicodedata.category(line[end]).startswith("M"):
                end += 1
            spans.append((start, end))
            start = end
            continue
        negated = NEGATED.match(line, start) or CANNOT.match(line, start)
        if negated:
            spans += [negated.span(1), negated.span(2)]
            start = negated.end()
            continue
        found = TOKEN.match(line, start)
        assert found is not None  # the last branch of the pattern matches any visible character
        spans.append(found.span())
        start = found.end()
    ends = [*(begin for begin, _ in spans), len(line)][1:]
    words: list[Word] = [
        (line[begin:end], *UNPARSED, end < following) for (begin, end), following in zip(spans, ends, strict=True)
    ]
    return place(words)


def sentences_in(lines: Iterable[str]) -> list[Sentence]:
    """The words of each sentence of a text, one per line or, in examples, several separated by tabs."""
    return [words_of_text(sentence) for line in lines for sentence in line.split("\t")]


def read_to_parse(path: Path) -> list[Sentence]:
    """The words of each sentence of a text that is given to a parser.

    Raises UserError as `check_words`, and naming the first line with a sentence without words.
    """
    lines = read_lines(path)
    check_words(str(path), lines)
    empty = next((number for number, line in enumerate(lines, 1) if not all(map(str.strip, line.split("\t")))), None)
    if empty:
        raise UserError(f"{path}, line {empty} has no words: remove it.")
    return sentences_in(lines)


def check_words(name: str, lines: Sequence[str]) -> None:
    """Raise UserError for a text called `name` that a parser cannot be given, as no blanks separate its words."""
    if script_of(lines) in UNSPACED:
        raise UserError(f"{name} has no blanks between words, which a parser needs: give trees in CoNLL-U instead.")

"""Word alignments in Pharaoh format: one line per pair, as `0-0 1-2`, source word before target word, from 0.

Words are separated by blanks in the text that the aligner read. That text may be split more finely than the corpus
(punctuation and clitics apart) but has the same characters, so that each word has its place in the line that the model
reads. Every link counts as a sure one (Och and Ney 2003, sec. 4). An empty line is a pair without links.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from heads.base.files import UserError, read_lines
from heads.syntax.conllu import Sentence, Word, place
from heads.syntax.tokenising import UNPARSED

LINK = re.compile("([0-9]{1,9})-([0-9]{1,9})")

Links = tuple[tuple[int, int], ...]
"""Source and target word of each link, 0-based, sorted and without duplicates."""


@dataclass(frozen=True, slots=True)
class AlignedPair:
    """A sentence pair as words with their places in the text, and the links between them."""

    source: Sentence
    target: Sentence
    links: Links


class Lines(NamedTuple):
    """The lines of a text, and its name in error messages."""

    name: str
    lines: Sequence[str]


def lines_of(path: Path) -> Lines:
    """The lines of a file."""
    return Lines(str(path), read_lines(path))


def aligned_pairs(links: Lines, texts: Sequence[Lines], words: Sequence[Lines]) -> list[AlignedPair]:
    """The pairs of a text with their links.

    texts, words: for source and target, the lines that the model reads, and those with blanks between words. Raises
    UserError naming the file and, if there is one, the line: for texts of different length, words that are not those of
    the text, malformed links, and links beyond the words.
    """
    sides = [list(_sentences(*side)) for side in zip(texts, words, strict=True)]
    for text in texts:
        if len(text.lines) != len(links.lines):
            raise UserError(
                f"{links.name} has {len(links.lines)} lines and {text.name} {len(text.lines)}: give one line of links "
                "per pair."
            )
    pairs = zip(*sides, links.lines, strict=True)
    return [
        AlignedPair(source, target, _links(line, (len(source), len(target)), f"{links.name}, line {number}"))
        for number, (source, target, line) in enumerate(pairs, 1)
    ]


def _links(line: str, sizes: Sequence[int], where: str) -> Links:
    found = set()
    for text in line.split():
        link = LINK.fullmatch(text)
        if not link:
            raise UserError(f"{where}: {text!r} is not a link such as 0-1, source word before target word, from 0.")
        ends = int(link[1]), int(link[2])
        if ends[0] >= sizes[0] or ends[1] >= sizes[1]:
            raise UserError(
                f"{where}: the link {text} lies beyond {sizes[0]} source and {sizes[1]} target words, counted from 0: "
                "give links between the words of this text."
            )
        found.add(ends)
    return tuple(sorted(found))


def _sentences(text: Lines, words: Lines) -> Iterator[Sentence]:
    if len(text.lines) != len(words.lines):
        raise UserError(
            f"{words.name} has {len(words.lines)} lines and {text.name} {len(text.lines)}: give the words of each line."
        )
    for number, (line, cut) in enumerate(zip(text.lines, words.lines, strict=True), 1):
        sentence = in_text(line, cut.split())
        if sentence is None:
            raise UserError(
                f"{words.name}, line {number} differs in characters from line {number} of {text.name}: give the same "
                "text, with blanks between words and nothing escaped."
            )
        yield sentence


def in_text(text: str, words: Iterable[str]) -> Sentence | None:
    """Words with their places in a text of single blanks; None if they are not all of its characters."""
    placed: list[Word] = []
    end = 0
    for word in words:
        if not text.startswith(word, end):
            return None
        end += len(word)
        space = text.startswith(" ", end)
        placed.append((word, *UNPARSED, space))
        end += space
    return place(placed) if end == len(text) else None


def line_of(links: Iterable[tuple[int, int]]) -> str:
    """Links as a line in Pharaoh format."""
    return " ".join(f"{source}-{target}" for source, target in links)

"""Dependency trees: token and sentence types, and reading and writing of CoNLL-U files.

The format is that of Universal Dependencies v2 (universaldependencies.org/format.html). Only what the analyses need
is kept: form, lemma, universal part of speech, head, relation, spacing. Heads are 1-based, 0 is the root.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice, zip_longest
from pathlib import Path

from heads.base.files import UserError, atomic_path, open_text

FIELDS = 10
RULE = "conform to CoNLL-U or leave the file out"

# form, lemma, upos, head, relation, space_after; and first word, last word, surface, space_after of a multiword token
Word = tuple[str, str, str, int, str, bool]
Span = tuple[int, int, str, bool]


@dataclass(frozen=True, slots=True)
class Token:
    """One syntactic word. `text[start:end]` of its sentence is its surface, -1 and -1 until it is in a sentence.

    Words of one multiword token (such as "don't" split into "do" and "n't") share the span of that token and have its
    surface as `range_form`; for all others `range_form` is empty. `space_after` is that of the surface token.
    """

    form: str
    lemma: str
    upos: str
    head: int
    relation: str
    space_after: bool = True
    start: int = -1
    end: int = -1
    range_form: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A tree over `tokens`; `sent_id` is the file's own, empty if it has none."""

    tokens: tuple[Token, ...]
    sent_id: str = ""

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[Token]:
        return iter(self.tokens)

    @property
    def text(self) -> str:
        """The surface text, made of forms and spaces, up to the end of the last word."""
        parts: list[str] = []
        end = -1
        for token in self.tokens:
            if token.range_form and token.end == end:
                continue
            parts.append(token.range_form or token.form)
            parts.append(" " if token.space_after else "")
            end = token.end
        return "".join(parts[:-1])


def place(words: Iterable[Word], multiword: Iterable[Span] = (), sent_id: str = "") -> Sentence:
    """A sentence of words, some of them parts of multiword tokens, with the character spans filled in."""
    ranges = {first: (last, form, space) for first, last, form, space in multiword}
    tokens: list[Token] = []
    start, last, shared, shared_space = 0, 0, "", True
    for index, (form, lemma, upos, head, relation, space_after) in enumerate(words, start=1):
        if index in ranges:
            last, shared, shared_space = ranges[index]
        inside = index <= last
        surface, space = (shared, shared_space) if inside else (form, space_after)
        end = start + len(surface)
        tokens.append(Token(form, lemma, upos, head, relation, space, start, end, shared if inside else ""))
        if index >= last:
            start = end + space
    return Sentence(tuple(tokens), sent_id)


def read_conllu(path: Path) -> Iterator[Sentence]:
    """Sentences of a plain or gzipped CoNLL-U file, one at a time.

    Empty nodes (8.1) are left out. Raises UserError naming file and line at the first malformed line, and naming the
    file if it is not text.
    """
    try:
        yield from _sentences(path)
    except (UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        raise UserError(f"{path} cannot be read to its end ({error}): give plain or gzipped UTF-8.") from error


def _sentences(path: Path) -> Iterator[Sentence]:
    with open_text(path) as stream:
        numbered = enumerate((line.rstrip("\r\n") for line in stream), start=1)
        for filled, lines in groupby(numbered, lambda one: bool(one[1])):
            if filled:
                yield _sentence(path, list(lines))


def check_same_sentences(first: Path, other: Path, sentences: int) -> None:
    """Check that the first `sentences` sentences (0: all) of two files have the same text and surface words.

    Raises UserError naming the first sentence that differs.
    """
    pairs = zip_longest(*(islice(read_conllu(path), sentences or None) for path in (first, other)))
    for number, (one, two) in enumerate(pairs, start=1):
        if one is None or two is None:
            short = first if one is None else other
            raise UserError(f"{short} has no sentence {number}: {first} and {other} must hold the same sentences.")
        if _surface(one) != _surface(two):
            raise UserError(
                f"Sentence {number} is {one.text!r} in {first} and {two.text!r} in {other}, or split into "
                "different words: give trees of the same sentences and words."
            )


def _surface(sentence: Sentence) -> tuple[str, set[tuple[int, int]]]:
    return sentence.text, {(token.start, token.end) for token in sentence}


def write_conllu(path: Path, sentences: Iterable[Sentence]) -> None:
    """Write all sentences or none, with `# sent_id` (counted from 1 if a sentence has none) and `# text`."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
        for number, sentence in enumerate(sentences, start=1):
            stream.write(f"# sent_id = {sentence.sent_id or number}\n# text = {sentence.text}\n")
            stream.writelines(f"{line}\n" for line in _rows(sentence))
            stream.write("\n")


def _rows(sentence: Sentence) -> Iterator[str]:
    numbered = enumerate(sentence.tokens, start=1)
    for (_, multiword), group in groupby(numbered, lambda one: (one[1].start, one[1].range_form)):
        words = list(group)
        if multiword:
            misc = "_" if words[0][1].space_after else "SpaceAfter=No"
            yield "\t".join([f"{words[0][0]}-{words[-1][0]}", multiword, *"_" * 7, misc])
        for index, token in words:
            misc = "_" if token.space_after or multiword else "SpaceAfter=No"
            tree = (str(token.head), token.relation)
            yield "\t".join([str(index), token.form, token.lemma, token.upos, "_", "_", *tree, "_", misc])


def _sentence(path: Path, lines: list[tuple[int, str]]) -> Sentence:
    sent_id = ""
    words: list[Word] = []
    spans: list[Span] = []
    for number, line in lines:
        if line.startswith("#"):
            key, equals, value = line[1:].partition("=")
            if equals and key.strip() == "sent_id":
                sent_id = sent_id or value.strip(" ")
            continue
        cells = line.split("\t")
        if len(cells) != FIELDS:
            raise UserError(f"{path}, line {number}: {len(cells)} columns instead of {FIELDS}; {RULE}.")
        if not cells[1]:
            raise UserError(f"{path}, line {number}: the form is empty; {RULE}.")
        space_after = "SpaceAfter=No" not in cells[9].split("|")
        if "-" in cells[0]:
            first, last = _range(path, number, cells[0], max(len(words), spans[-1][1] if spans else 0))
            spans.append((first, last, cells[1], space_after))
        elif "." not in cells[0]:
            if cells[0] != str(len(words) + 1):
                raise UserError(f"{path}, line {number}: word {cells[0]!r} follows word {len(words)}; {RULE}.")
            if not cells[6].isdecimal():
                raise UserError(f"{path}, line {number}: the head {cells[6]!r} is not a number; {RULE}.")
            words.append((cells[1], cells[2], cells[3], int(cells[6]), cells[7], space_after))
    _check(path, lines[-1][0], words, spans)
    return place(words, spans, sent_id)


def _range(path: Path, number: int, cell: str, count: int) -> tuple[int, int]:
    first, _, last = cell.partition("-")
    if not (first.isdecimal() and last.isdecimal() and count + 1 == int(first) < int(last)):
        raise UserError(f"{path}, line {number}: {cell!r} is not a range of the words that follow; {RULE}.")
    return int(first), int(last)


def _check(path: Path, number: int, words: list[Word], spans: list[Span]) -> None:
    if not words:
        raise UserError(f"{path}, line {number}: the sentence that ends here has no words; {RULE}.")
    heads = [head for _, _, _, head, _, _ in words]
    if too_far := [head for head in heads if head > len(words)]:
        raise UserError(f"{path}, line {number}: head {too_far[0]} lies beyond the {len(words)} words above; {RULE}.")
    if spans and spans[-1][1] > len(words):
        raise UserError(f"{path}, line {number}: a range ends at {spans[-1][1]} of {len(words)} words; {RULE}.")
    if circle := _circle(heads):
        raise UserError(f"{path}, line {number}: word {circle} of the sentence above depends on itself; {RULE}.")


def _circle(heads: list[int]) -> int:
    """The first word (1-based) that is its own head, even through others; 0 if every word leads to a root."""
    rooted = {0}
    for word in range(1, len(heads) + 1):
        way: list[int] = []
        while word not in rooted:
            if word in way:
                return word
            way.append(word)
            word = heads[word - 1]
        rooted.update(way)
    return 0

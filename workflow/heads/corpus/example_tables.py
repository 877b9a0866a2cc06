"""Labelled examples as they stand in tables: a line each, columns divided by tabs, and no quoting.

A quotation mark is a character like any other: in GLUE's files and in those of SNLI and MultiNLI one may open and never
close, and a reader of CSV would then take hundreds of lines for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from heads.base.files import UserError
from heads.base.names import OUT_OF_DOMAIN
from heads.config.corpora import ExamplesCorpus
from heads.config.examples import GrammarExamples, Table
from heads.config.messages import nearest
from heads.corpus.grammar.inference import LABELS, first_of_split
from heads.corpus.pairs import read_text

TAB = "\t"
ORDER = ("premise", "hypothesis")
SEED = 1
"""Of the pairs of the grammar, as in the corpus that has no others."""


class Example(NamedTuple):
    """One sentence or two, and their label; None where the table says that there is none."""

    sentences: tuple[str, ...]
    label: str | None


class _Places(NamedTuple):
    """How many columns each line of a table has, and where it has what is read."""

    columns: int
    sentences: tuple[int, ...]
    label: int
    only: Mapping[int, str]

    @property
    def last(self) -> int:
        """The last column that is read."""
        return max(*self.sentences, self.label, *self.only)


def read_examples(corpus: ExamplesCorpus, split: str, downloads: Path) -> Iterator[Example]:
    """The examples of all tables of a split in their order, sentences as they are written there, or of the grammar.

    Raises UserError, naming file and line, for a missing or damaged file, text that is not UTF-8, a column that is not
    there, a line of another number of columns, a label that the settings do not explain and an empty sentence.
    """
    for part in corpus.parts[split]:
        if isinstance(part, GrammarExamples):
            yield from _of_grammar(corpus, part, split)
        else:
            yield from _of_table(corpus, part, downloads)


def _of_grammar(corpus: ExamplesCorpus, part: GrammarExamples, split: str) -> Iterator[Example]:
    """Pairs of the grammar that no other split has. Raises UserError where it would not fit the corpus."""
    if len(corpus.columns.sentences) != 2 or not {*LABELS} <= {*corpus.labels.values()}:
        raise UserError(
            f"The {corpus.languages} corpus cannot have pairs of the grammar under {split}: they have two sentences "
            f"and the labels {', '.join(LABELS)}."
        )
    for pair in first_of_split(SEED, "test" if split == OUT_OF_DOMAIN else split, part.grammar):
        yield Example(tuple(pair.text.split(TAB)), pair.label)


def _of_table(corpus: ExamplesCorpus, part: Table, downloads: Path) -> Iterator[Example]:
    lines = enumerate(read_text(part.table, downloads), 1)
    first = next(lines, None)
    if first is None:
        raise UserError(f"{part.table} is empty: give a table with an example a line.")
    places = _places(corpus, part, _cells(first[1]))
    for line, text in lines if corpus.columns.named else chain([first], lines):
        cells = _cells(text)
        if len(cells) != places.columns and not (part.ragged and places.last < len(cells) < places.columns):
            raise UserError(
                f"{part.table}, line {line} has {len(cells)} columns, but its first line has {places.columns}: mend it."
            )
        if all(cells[place] == word for place, word in places.only.items()):
            yield _example(corpus, cells, places, f"{part.table}, line {line}")


def _cells(text: str) -> list[str]:
    return text.removesuffix("\r").split(TAB)


def _places(corpus: ExamplesCorpus, part: Table, first: Sequence[str]) -> _Places:
    """Where the columns are that the settings name or count. Raises UserError for one that is not there."""
    columns = corpus.columns

    def place(column: int | str) -> int:
        """The number of a column, from 0."""
        if isinstance(column, int):
            if column < len(first):
                return column
            raise UserError(
                f"{part.table} has {len(first)} columns, and none of number {column} counted from 0: correct columns."
            )
        if first.count(column) != 1:
            how = "several columns" if column in first else "no column"
            raise UserError(f"{part.table} has {how} {column!r} in its first line.{nearest(column, first)}")
        return first.index(column)

    only = {place(column): word for column, word in part.only.items()}
    return _Places(len(first), tuple(map(place, columns.sentences)), place(columns.label), only)


def _example(corpus: ExamplesCorpus, cells: Sequence[str], places: _Places, where: str) -> Example:
    word = cells[places.label].strip()
    sentences = tuple(cells[place] for place in places.sentences)
    if word in corpus.unlabelled:
        return Example(sentences, None)
    if word not in corpus.labels:
        raise UserError(
            f"{where} has the label {word!r}, which labels does not explain: add it there, or to unlabelled."
        )
    for name, sentence in zip(ORDER, sentences, strict=False):
        if not sentence.strip():
            raise UserError(f"{where} has an empty {name}: fill it in or take the line out.")
    return Example(sentences, corpus.labels[word])

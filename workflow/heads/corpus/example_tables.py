"""Labelled examples read from tables: one example per line, columns separated by tabs, no quoting.

A quotation mark is an ordinary character: in the files of GLUE, SNLI and MultiNLI one may open and never close, and a
CSV reader would then take hundreds of lines for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from heads.base.files import UserError
from heads.base.names import OUT_OF_DOMAIN
from heads.config.corpora import ExamplesCorpus
from heads.config.corpus_parts import GrammarExamples, Table
from heads.config.messages import nearest
from heads.corpus.grammar.inference import LABELS, first_of_split
from heads.corpus.pairs import read_text

TAB = "\t"
ORDER = ("premise", "hypothesis")
SEED = 1
"""Seed of the grammar's pairs, the same as in the corpus that consists of them alone."""


class Example(NamedTuple):
    """One or two sentences and their label, which is None if the table marks them as unlabelled."""

    sentences: tuple[str, ...]
    label: str | None


class _Places(NamedTuple):
    """The number of columns of a table, and the positions of those that are read."""

    columns: int
    sentences: tuple[int, ...]
    label: int
    only: Mapping[int, str]


def read_examples(corpus: ExamplesCorpus, split: str, downloads: Path) -> Iterator[Example]:
    """The examples of a split in order, from its tables (with the sentences unchanged) or from the grammar.

    Raises UserError, naming file and line, for a missing or damaged file, text that is not UTF-8, a missing column, a
    line with a different number of columns, a label that the settings do not list and an empty sentence.
    """
    for part in corpus.parts[split]:
        if isinstance(part, GrammarExamples):
            yield from _of_grammar(corpus, part, split)
        else:
            yield from _of_table(corpus, part, downloads)


def _of_grammar(corpus: ExamplesCorpus, part: GrammarExamples, split: str) -> Iterator[Example]:
    """Pairs of the grammar that are in no other split. Raises UserError if they do not fit the corpus."""
    if len(corpus.columns.sentences) != 2 or not {*LABELS} <= {*corpus.labels.values()}:
        raise UserError(
            f"The {corpus.languages} corpus cannot have pairs of the grammar under {split}: they have two sentences "
            f"and the labels {', '.join(LABELS)}."
        )
    for pair in first_of_split(SEED, "test" if split == OUT_OF_DOMAIN else split, part.grammar):
        yield Example(tuple(pair.source.split(TAB)), pair.label)


def _of_table(corpus: ExamplesCorpus, part: Table, downloads: Path) -> Iterator[Example]:
    lines = enumerate(read_text(part.table, downloads), 1)
    first = next(lines, None)
    if first is None:
        raise UserError(f"{part.table} is empty: give a table with one example per line.")
    places = _places(corpus, part, _cells(first[1]))
    last = max(*places.sentences, places.label, *places.only)
    for line, text in lines if corpus.columns.named else chain([first], lines):
        cells = _cells(text)
        if len(cells) != places.columns and not (part.ragged and last < len(cells) < places.columns):
            raise UserError(
                f"{part.table}, line {line} has {len(cells)} columns, but its first line has {places.columns}: fix it."
            )
        if all(cells[place] == word for place, word in places.only.items()):
            yield _example(corpus, cells, places, f"{part.table}, line {line}")


def _cells(text: str) -> list[str]:
    return text.removesuffix("\r").split(TAB)


def _places(corpus: ExamplesCorpus, part: Table, first: Sequence[str]) -> _Places:
    """The positions of the columns that the settings name or number. Raises UserError for a missing column."""
    columns = corpus.columns

    def place(column: int | str) -> int:
        """Position of a column, counted from 0."""
        if isinstance(column, int):
            if column < len(first):
                return column
            raise UserError(
                f"{part.table} has {len(first)} columns, so no column {column} counted from 0: correct columns."
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
        raise UserError(f"{where} has the label {word!r}, which labels does not list: add it there, or to unlabelled.")
    for name, sentence in zip(ORDER, sentences, strict=False):
        if not sentence.strip():
            raise UserError(f"{where} has an empty {name}: fill it in or take the line out.")
    return Example(sentences, corpus.labels[word])

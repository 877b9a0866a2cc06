"""Settings of the tables of labelled examples, with types and descriptions. Imported by the Snakefile, so light."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from heads.config.corpus_parts import CountOrText, File, keys_of
from heads.config.fields import Closed, Count, CountOrZero, Name, Text, YesNo, meant, required, setting
from heads.config.messages import fault

ColumnName = Annotated[
    CountOrZero | Text, meant("a column's name in the first line, or its number from 0 if the first line has no names")
]


class ExampleColumns(Closed):
    """The columns of sentences and labels: names, or numbers in a table whose first line is an example."""

    premise: ColumnName = required("column of the first or only sentence")
    label: ColumnName = required("column of the label")
    hypothesis: ColumnName | None = setting(None, "column of the second sentence; left out if there is only one")

    @property
    def sentences(self) -> tuple[int | str, ...]:
        """The columns of the sentences, in order."""
        return (self.premise,) if self.hypothesis is None else (self.premise, self.hypothesis)

    @property
    def named(self) -> bool:
        """Whether the first line of a table names its columns."""
        return isinstance(self.premise, str)


class Table(Closed):
    """A part in one file with an example per line, its columns separated by tabs and never quoted."""

    table: File = required("a file with an example per line")
    only: Mapping[Text, Text] = setting({}, "use only lines that have these words in the columns of these names")
    ragged: YesNo = setting(False, "true: lines may lack their last columns, if none of those is read")


class GrammarExamples(Closed):
    """A part written by the embedded grammar: premises and hypotheses, see `heads.corpus.grammar.inference`."""

    grammar: CountOrText = required(
        "number of pairs, best a multiple of nine; a larger number begins with the same pairs"
    )


class ExampleCleaning(Closed):
    """Limits of the filters, see `heads.corpus.examples`."""

    max_words: Count = required("examples with more words in a sentence are removed")


def _by_word(value: Any) -> Any:
    """A list of labels as a mapping of each to itself, and numbers as text: YAML reads 0 as a number, tables do not."""
    if isinstance(value, list | tuple):
        return {_text(word): _text(word) for word in value}
    if isinstance(value, Mapping):
        return {_text(word): _text(label) for word, label in value.items()}
    return value


def _text(word: Any) -> Any:
    return str(word) if isinstance(word, int) and not isinstance(word, bool) else word


def _several(labels: Mapping[str, str]) -> Mapping[str, str]:
    if len({*labels.values()}) < 2:
        raise fault(" must be two labels or more, to choose from.")
    return labels


Labels = Annotated[
    Mapping[Text, Name],
    BeforeValidator(_by_word, json_schema_input_type=tuple[Name | int, ...] | Mapping[str, Name]),
    AfterValidator(_several),
]
"""The label that each word in the label column of a table stands for."""
ExamplePart = Annotated[
    Annotated[GrammarExamples, Tag("<grammar>")] | Annotated[Table, Tag("<table>")],
    Discriminator(lambda value: "<grammar>" if "grammar" in keys_of(value) else "<table>"),
]
ExampleParts = Annotated[tuple[ExamplePart, ...], Field(min_length=1)]

"""Show what every head of a model does on a text: a page, and a table that describes each head in words.

heads inspect firefox/en-pt text.en -o heads.html
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from heads.base.files import write_text
from heads.base.names import AUTO
from heads.cli._flags import METRIC, AnyModel, Labels, Languages, Machine, Metric, Tokeniser
from heads.cli._signature import Written
from heads.one_model.inspecting import inspect, progress, table_beside
from heads.one_model.measuring import STEPS
from heads.one_model.reading import read_text
from heads.one_model.text import Text


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How a model is inspected."""

    trees: Annotated[Path | None, "treebank of the source language, CoNLL-U, for syntactic heads"] = None
    stanza: Annotated[str, {"metavar": "LANGUAGE"}, "parse the text with Stanza's models instead, such as en"] = ""
    max_subwords: Annotated[
        int, f"longer lines, and those with longer references, are left out and counted ({Text.max_subwords})"
    ] = Text.max_subwords
    masked: Annotated[int, f"lines on which each head is masked alone ({Text.masked})"] = Text.masked
    causal: Annotated[bool, "fit causal gates too: which heads help, interfere or do neither"] = False
    labels: Labels = ()
    metric: Metric = METRIC
    tokenize: Tokeniser = AUTO


def run(
    model: AnyModel,
    text: Annotated[Path, "text to read, one sentence or example per line"],
    /,
    *,
    languages: Languages,
    output: Annotated[
        Path, "-o", Written(beside=table_beside), "page to write, such as heads.html, with a table beside it"
    ],
    references: Annotated[Path | None, "right outputs or labels for the text; default: the model's own"] = None,
    show: Annotated[
        Sequence[int], {"nargs": "+", "metavar": "N"}, "sentences whose attention is shown, counted from 1"
    ] = (),
    sentences: Annotated[int, "the most lines to read (200)"] = 200,
    asked: Asked,
    machine: Machine,
) -> None:
    """Measure, write page and table, and say where they are."""
    table = table_beside(output)
    lines, wanted = read_text(text, references, sentences)
    with progress(sys.stderr, len(STEPS) + asked.causal) as report:
        found = inspect(
            model,
            lines,
            references=wanted,
            references_file=references,
            shown=show,
            prefix=languages.prefix,
            languages=languages.pair,
            report=report,
            **vars(asked),
            **vars(machine),
        )
    write_text(output, found.html)
    write_text(table, found.heads.to_csv(sep="\t", index=False, lineterminator="\n"))
    print("\n".join([*found.notes, f"{output} and {table}"]), file=sys.stderr)

"""What every head of a model does on a text: a page, and beside it a table with a sentence a head.

heads inspect firefox/en-pt text.en -o heads.html
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from heads.base.files import UserError, read_lines, write_text
from heads.cli._flags import add_device_arguments, add_language_arguments, languages_of
from heads.one_model.inspecting import inspect
from heads.one_model.measuring import STEPS, Text
from heads.one_model.progress import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `heads inspect`."""
    parser.add_argument("model", help="a folder, a name on the hub, or firefox/en-pt")
    parser.add_argument("text", type=Path, help="what it reads, a sentence or example a line")
    parser.add_argument("-o", "--output", type=Path, required=True, help="page to write, such as heads.html")
    parser.add_argument("--references", type=Path, help="their translations or labels; without them the model's own")
    parser.add_argument("--trees", type=Path, help="treebank of the source language, CoNLL-U, for syntactic heads")
    parser.add_argument("--stanza", default="", metavar="LANGUAGE", help="or let its models parse the text, such as en")
    parser.add_argument(
        "--show", type=int, nargs="+", default=(), metavar="N", help="sentences whose attention is shown, from 1"
    )
    parser.add_argument("--sentences", type=int, default=200, help="read so many at most (200)")
    parser.add_argument(
        "--masked", type=int, default=Text.masked, help=f"mask each head alone in so many ({Text.masked})"
    )
    parser.add_argument(
        "--causal", action="store_true", help="fit causal gates too: which heads help, interfere or do neither"
    )
    add_language_arguments(parser)
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Measure, write page and table, say where they are."""
    table = arguments.output.with_suffix(".tsv")
    if table == arguments.output:
        raise UserError(f"{arguments.output} is the page, and ends in .html; the table is written beside it.")
    sentences = read_lines(arguments.text)[: arguments.sentences]
    references = arguments.references and read_lines(arguments.references)[: arguments.sentences]
    with Progress(sys.stderr, len(STEPS) + arguments.causal) as progress:
        found = inspect(
            arguments.model,
            sentences,
            references=references,
            trees=arguments.trees,
            stanza=arguments.stanza,
            shown=arguments.show,
            masked=arguments.masked,
            causal=arguments.causal,
            prefix=arguments.prefix,
            languages=languages_of(arguments),
            device=arguments.device,
            threads=arguments.threads,
            report=progress.report,
        )
    write_text(arguments.output, found.html)
    write_text(table, found.heads.to_csv(sep="\t", index=False, lineterminator="\n"))
    print("\n".join([*found.notes, f"{arguments.output} and {table}"]), file=sys.stderr)

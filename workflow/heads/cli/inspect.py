"""Show what every head of a model does on a text: a page, and a table that describes each head in words.

heads inspect firefox/en-pt text.en -o heads.html
"""

import argparse
import sys
from pathlib import Path

from heads.base.files import write_text
from heads.cli._flags import (
    add_device_arguments,
    add_labels_argument,
    add_metric_argument,
    add_model_argument,
    add_output_argument,
    add_tokeniser_argument,
    languages_of,
)
from heads.one_model.inspecting import inspect, progress, table_beside
from heads.one_model.measuring import STEPS
from heads.one_model.reading import read_text
from heads.one_model.text import Text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_model_argument(parser)
    parser.add_argument("text", type=Path, help="text to read, one sentence or example per line")
    what = "page to write, such as heads.html, with a table beside it"
    add_output_argument(parser, "-o", "--output", what=what, beside=table_beside)
    parser.add_argument(
        "--references", type=Path, help="right outputs or labels for the text; default: the model's own"
    )
    add_labels_argument(parser)
    add_metric_argument(parser)
    add_tokeniser_argument(parser)
    parser.add_argument("--trees", type=Path, help="treebank of the source language, CoNLL-U, for syntactic heads")
    parser.add_argument(
        "--stanza", default="", metavar="LANGUAGE", help="parse the text with Stanza's models instead, such as en"
    )
    parser.add_argument(
        "--show",
        type=int,
        nargs="+",
        default=(),
        metavar="N",
        help="sentences whose attention is shown, counted from 1",
    )
    parser.add_argument("--sentences", type=int, default=200, help="the most lines to read (200)")
    parser.add_argument(
        "--max-subwords",
        type=int,
        default=Text.max_subwords,
        help=f"longer lines, and those with longer references, are left out and counted ({Text.max_subwords})",
    )
    parser.add_argument(
        "--masked", type=int, default=Text.masked, help=f"lines on which each head is masked alone ({Text.masked})"
    )
    parser.add_argument(
        "--causal", action="store_true", help="fit causal gates too: which heads help, interfere or do neither"
    )
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Measure, write page and table, and say where they are."""
    table = table_beside(arguments.output)
    sentences, references = read_text(arguments.text, arguments.references, arguments.sentences)
    with progress(sys.stderr, len(STEPS) + arguments.causal) as report:
        found = inspect(
            arguments.model,
            sentences,
            references=references,
            trees=arguments.trees,
            stanza=arguments.stanza,
            shown=arguments.show,
            masked=arguments.masked,
            causal=arguments.causal,
            max_subwords=arguments.max_subwords,
            prefix=arguments.prefix,
            languages=languages_of(arguments),
            labels=arguments.labels,
            references_file=arguments.references,
            tokenize=arguments.tokenize,
            metric=arguments.metric,
            device=arguments.device,
            threads=arguments.threads,
            report=report,
        )
    write_text(arguments.output, found.html)
    write_text(table, found.heads.to_csv(sep="\t", index=False, lineterminator="\n"))
    print("\n".join([*found.notes, f"{arguments.output} and {table}"]), file=sys.stderr)

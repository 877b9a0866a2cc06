"""The public function `inspect`: what every head of a model does on a text."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

import pandas as pd

from heads.base.files import UserError, check_references
from heads.base.names import AUTO, BLEU, METRIC_NAMES
from heads.explore.page import page
from heads.interop.family import NO_LANGUAGES
from heads.interop.opening import open_model
from heads.one_model.answering import references_named
from heads.one_model.measuring import Measuring
from heads.one_model.page import content_of, notes_of, table_of
from heads.one_model.text import Text
from heads.training.devices import pick
from heads.translation.scoring import metric_named
from heads.translation.stream import Report


@dataclass(frozen=True)
class Inspection:
    """The result of `inspect`: `heads` has one row per head, `html` is an interactive page."""

    heads: pd.DataFrame
    html: str
    notes: Sequence[str] = ()
    """Results of the check of causal gates, one line each."""

    def _repr_html_(self) -> str:
        """The table, as notebooks show it."""
        return str(self.heads.to_html(index=False))


def inspect(
    model: str | Path,
    sentences: Sequence[str],
    *,
    references: Sequence[str] | None = None,
    trees: str | Path | None = None,
    stanza: str = "",
    shown: Sequence[int] = (),
    masked: int = Text.masked,
    causal: bool = False,
    prefix: str = "",
    languages: tuple[str, str] = NO_LANGUAGES,
    max_subwords: int = Text.max_subwords,
    labels: Sequence[str] = (),
    references_file: str | Path | None = None,
    tokenize: str = AUTO,
    metric: str = METRIC_NAMES[BLEU].lower(),
    device: str = "auto",
    threads: int = 1,
    report: Report = lambda _: None,
) -> Inspection:
    """Measure every head of a model on the given sentences or examples.

    model: folder of a run, exported folder, Marian's or transformers' folder, name on the hub, or firefox/en-pt.
    references: right texts or labels; by default the model's own outputs, so that scores are fidelity to them, as
    the cosine of vectors always is. trees: a CoNLL-U file, for syntactic heads. stanza: a language such as en, whose
    Stanza models parse the sentences if no trees are given. shown: numbers, from 1, of the sentences whose attention
    the page shows. masked: the number of sentences on which each head is masked alone. causal: fit causal gates as
    well (Nam et al. 2025), which takes minutes more. prefix: text before each source sentence. languages: source and
    target language, by the names that a multilingual model uses. labels: of a BERT that does not name them, in the
    order of its classifier. references_file: where the references are from, for messages. tokenize: sacrebleu's name of
    a tokeniser for BLEU and ROUGE-L; by default the one for the script of the references. metric: bleu, chrf or
    rouge-l, of models that write text. Sentences without words, and those with more than `max_subwords` subwords or
    with such a reference, are left out and counted on standard error. Raises UserError for a model, text, tokeniser
    or metric that cannot be used.
    """
    if not sentences:
        raise UserError("The text is empty: give a file with one sentence per line.")
    if references is not None:
        check_references("The text", len(sentences), "its references", references)
    scored_by = metric_named(metric, tokenize)
    treebank = Path(trees) if trees else None
    text = Text(sentences, references, treebank, stanza, shown, masked, causal, max_subwords, tokenize, scored_by)
    bundle = open_model(str(model), prefix, labels, languages)
    if references is not None:
        origin = references_file or "the references"
        text = replace(text, references=references_named(bundle, sentences, references, origin))
    measured = Measuring(bundle, text, pick(device, threads), report).measure()
    found = content_of(shown_name(str(model)), measured)
    return Inspection(pd.DataFrame(table_of(found)), page(found), notes_of(measured))


def shown_name(model: str) -> str:
    """The name of a model on the page."""
    return re.sub(r"[^\w.-]+", "-", model.rstrip("/")).strip("-.") or "model"


def table_beside(page: Path) -> Path:
    """The path of the table that is written with a page."""
    return page.with_suffix(".tsv")


@contextmanager
def progress(stream: TextIO, steps: int) -> Iterator[Report]:
    """A progress line, and the function to call as each step begins; on a stream that is no terminal, no line."""
    done = 0

    def write(line: str) -> None:
        if stream.isatty():
            stream.write(f"\r\x1b[K{line}")
            stream.flush()

    def report(what: str) -> None:
        nonlocal done
        write(f"[{'#' * done}{'.' * (steps - done)}] {what}")
        done += 1

    try:
        yield report
    finally:
        write("")

"""Measurements of one model's heads, as table rows and as content of the interactive page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from heads.base.names import METRICS
from heads.base.runs import Run
from heads.config.trainings import HardConcrete
from heads.explore.content import content
from heads.explore.head_rows import by_head
from heads.explore.needs import EXPLORED
from heads.one_model.answering import UNITS
from heads.one_model.measuring import CAUSAL_FILE, CHECK_FILE
from heads.one_model.sentences import CHANGE, EFFECTS_IN_WORDS, in_words
from heads.tables.gathering import tabulated
from heads.tables.needs import NEEDS
from heads.tables.reading import RunContent, RunFiles, frames_of

Record = dict[str, Any]
Measured = Mapping[str, Any]
"""What the files of a run hold, by their names."""
PRUNED = "The model no longer has this head."
WHOLE = Run.parse("baseline/seed-1")
"""The run that an unpruned model is on the page."""
PARTS = ("heads", "attention")
"""Parts of the page; the other parts are about pruned models."""


def content_of(name: str, measured: Measured, pruned: Sequence[RunFiles] = (), parts: Sequence[str] = PARTS) -> Record:
    """The content of the page for a model and those pruned from it, with a description of each head in words.

    name: of the model. measured: by `heads.one_model.measuring`. parts: of the page.
    """
    runs = [(name, WHOLE, RunContent(measured)), *pruned]
    masked = pd.DataFrame(measured["ablation.tsv"]).rename(
        columns=lambda column: re.sub(f"^({'|'.join(METRICS)})", "score", column)
    )
    masked = masked.assign(experiment=name, seed=WHOLE.seed)
    made = ("measures", "pruning") if pruned else ("measures",)
    tables = {"michel_table1": masked} | {table: tabulated(table, frames_of(NEEDS[table], runs)) for table in made}
    found = content(frames_of(EXPLORED, runs), tables, {name: HardConcrete()}, [])
    (shown,) = found["experiments"]
    shown["parts"] = parts
    alone, effects = by_head(masked.to_dict("records")), by_head(measured.get(CAUSAL_FILE, ()))
    for place, row in by_head(shown["table"]).items():
        if (own := alone.get(place)) is None:
            row["in_words"] = PRUNED
            continue
        row |= {column: round(own[column], 2) for column in CHANGE[1:]}
        row["in_words"] = in_words(row, UNITS.get(shown["metric"]["name"], shown["metric"]["name"]))
        if effect := effects.get(place):
            row["effect"] = effect["effect"]
            row["in_words"] += f" By causal gates it {EFFECTS_IN_WORDS[row['effect']]}."
    return found


def table_of(found: Mapping[str, Any]) -> list[Record]:
    """One row per head that the model has, counted from 1: what it does in words, then all its measurements."""
    (shown,) = found["experiments"]
    measures = [measure["key"] for measure in shown["measures"] if measure["key"] != "score_lost"]
    return [
        {
            **{"attention": row["attention"], "layer": row["layer"] + 1, "head": row["head"] + 1},
            **{column: row[column] for column in ("in_words", *CHANGE, "p_value")},
            **{key: row[key] for key in ("effect",) if key in row},
            **{key: row["values"].get(key) for key in measures},
        }
        for row in shown["table"]
        if row["in_words"] != PRUNED
    ]


def notes_of(measured: Measured) -> list[str]:
    """BLEU lost when all heads of one causal effect, or random ones, are masked at once; one line each."""
    return [
        f"{row['heads']} heads masked at once ({row['masked']}): {row['bleu_change']:+.1f} BLEU"
        for row in measured.get(CHECK_FILE, ())
        if row["heads"]
    ]

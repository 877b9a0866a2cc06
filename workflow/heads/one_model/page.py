"""Measurements of one model's heads, as table rows and as content of the interactive page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from heads.base.files import read_tsv
from heads.base.names import METRICS
from heads.base.runs import run_of
from heads.config.trainings import HardConcrete
from heads.explore.content import content
from heads.one_model.answering import UNITS
from heads.one_model.measuring import CAUSAL_FILE, CHECK_FILE
from heads.one_model.sentences import CHANGE, EFFECTS_IN_WORDS, in_words
from heads.tables.gathering import gathered

Record = dict[str, Any]
PARTS = ("heads", "attention")
"""Parts of the page; the other parts are about pruned models."""


def content_of(runs: Sequence[Path], parts: Sequence[str] = PARTS) -> Record:
    """The content of the page for some runs, with a description of each head in words.

    runs: the one that `heads.one_model.measuring` wrote, then those pruned from it. parts: of the page.
    """
    run = runs[0]
    name, described = run_of(str(run))
    masked = pd.read_csv(run / "ablation.tsv", sep="\t").rename(
        columns=lambda column: re.sub(f"^({'|'.join(METRICS)})", "score", column)
    )
    masked = masked.assign(experiment=name, seed=described.seed)
    tables = {"measures": gathered("measures", runs), "michel_table1": masked}
    if len(runs) > 1:
        tables["pruning"] = gathered("pruning", runs)
    found = content(runs, tables, {name: HardConcrete()}, [])
    (shown,) = found["experiments"]
    shown["parts"] = parts
    for row, own in zip(shown["table"], masked.to_dict("records"), strict=True):
        row |= {column: round(own[column], 2) for column in CHANGE[1:]}
        row["in_words"] = in_words(row, UNITS.get(shown["metric"]["name"], shown["metric"]["name"]))
    if (run / CAUSAL_FILE).is_file():
        for row, own in zip(shown["table"], read_tsv(run / CAUSAL_FILE), strict=True):
            row["effect"] = own["effect"]
            row["in_words"] += f" By causal gates it {EFFECTS_IN_WORDS[own['effect']]}."
    return found


def table_of(found: Mapping[str, Any]) -> list[Record]:
    """One row per head, counted from 1: what it does in words, then all its measurements."""
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
    ]


def notes_of(run: Path) -> list[str]:
    """BLEU lost when all heads of one causal effect, or random ones, are masked at once; one line each."""
    if not (run / CHECK_FILE).is_file():
        return []
    return [
        f"{row['heads']} heads masked at once ({row['masked']}): {float(row['bleu_change']):+.1f} BLEU"
        for row in read_tsv(run / CHECK_FILE)
        if int(row["heads"])
    ]

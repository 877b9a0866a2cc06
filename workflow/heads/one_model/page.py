"""Measurements of one model's heads: as table rows, as content of the interactive page, and each head in words."""

import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import pandas as pd

from heads.base.names import CAUSAL_FILE, HALVES, METRICS
from heads.base.runs import Run
from heads.config.trainings import HardConcrete
from heads.explore.content import content
from heads.explore.head_rows import by_head
from heads.explore.needs import EXPLORED
from heads.one_model.answering import UNITS
from heads.one_model.measuring import CHECK_FILE
from heads.tables.catalogue import TABLES
from heads.tables.gathering import table_of_frames
from heads.tables.reading import RunContent, RunFiles, frames_of

Record = dict[str, Any]
Measured = Mapping[str, Any]
"""What the files of a run hold, by their names."""
Row = Mapping[str, Any]
PRUNED = "The model no longer has this head."
WHOLE = Run.parse("baseline/seed-1")
"""The run that an unpruned model is on the page."""
PARTS = ("heads", "attention")
"""Parts of the page; the other parts are about pruned models."""
OFTEN = 0.5
"""A head has a habit if it does something in at least this share of cases."""
OFFSETS = {
    "-2": "the second subword before",
    "-1": "the previous subword",
    "0": "the subword itself",
    "+1": "the next subword",
    "+2": "the second subword after",
}
EFFECTS_IN_WORDS = {
    "facilitates": "helps",
    "interferes": "is in the way",
    "irrelevant": "neither helps nor is in the way",
}
"""The effects of heads by causal gates, in words."""
CHANGE = ("score_change", "score_change_low", "score_change_high")
"""Columns of what masking a head alone changes, with its 95 % interval."""


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
    tables = {"michel_table1": masked} | {one: table_of_frames(one, frames_of(TABLES[one].need, runs)) for one in made}
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
    """What is lost when all heads of one causal effect, or random ones, are masked at once; one line each."""
    return [
        f"{row['heads']} heads masked at once ({row['masked']}): {row['change']:+.1f} {row['unit']}"
        for row in measured.get(CHECK_FILE, ())
        if row["heads"]
    ]


def in_words(row: Row, score: str) -> str:
    """Two sentences about a head. row: of `heads.explore.head_rows`; score: the name of the metric."""
    return f"{_where_it_looks(row)}. {_what_is_lost(row, score)}."


def _where_it_looks(row: Row) -> str:
    """Its habit: a relation if it holds one, else a fixed offset, a rare subword or a target subword's source."""
    tried = sorted(row["roles"], key=lambda role: -float(role["accuracy"]))
    relations = [role for role in tried if role["role"] == "syntactic" and role["holds"]]
    others = [role for role in tried if role["role"] in ("positional", "rare", "cross")]
    if relations:
        return f"Follows {relations[0]['label']} in {_percent(relations[0])} of cases"
    halves = _by_halves(row["roles"])
    if others and (others[0]["accuracy"] >= OFTEN or others[0]["holds"]):
        return f"Looks at {_place(others[0])} in {_percent(others[0])} of cases{halves and f' ({halves})'}"
    facts = [f"{_percent(others[0])} at {_place(others[0])}"] if others else []
    facts += [halves] if halves else []
    if (sure := row["values"].get("confidence")) is not None:
        facts.append(f"confidence {sure:.2f}")
    return f"Has no fixed place to look at ({', '.join(facts)})"


def _by_halves(roles: Sequence[Row]) -> str:
    """Where it looks most by its biases of distances alone, and by its content alone; "" if it has no such biases."""
    known = [role for role in roles if role["role"] == "positional" and "by_bias" in role]
    if not known:
        return ""
    bias, content = (max(known, key=itemgetter(half)) for half in HALVES[:2])
    weight = f"where it puts a weight of {bias['bias_weight']:.2f}"
    by_bias = f"by its bias alone {_percent(bias, HALVES[0])} at {_place(bias)}, {weight}"
    return f"{by_bias}; by its content alone {_percent(content, HALVES[1])} at {_place(content)}"


def _place(role: Row) -> str:
    """The place that a role looks at, in words."""
    label = str(role["label"])
    if role["role"] == "positional":
        return OFFSETS.get(role["name"], label)
    if role["role"] == "rare":
        return "the rarest subword" if role["name"] == "rarest" else "one of the two rarest subwords"
    return label.replace("token", "subword")


def _what_is_lost(row: Row, score: str) -> str:
    """What masking it alone costs, with the interval, unless that includes zero."""
    change, low, high = (float(row[column]) for column in CHANGE)
    if low <= 0 <= high:
        return "Masked alone it costs nothing measurable"
    near, far = sorted((abs(low), abs(high)))
    return f"Masked alone it {'costs' if change < 0 else 'gains'} {abs(change):.1f} {score} ({near:.1f} to {far:.1f})"


def _percent(role: Row, column: str = "accuracy") -> str:
    return f"{100 * float(role[column]):.0f} %"

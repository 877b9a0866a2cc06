"""What a head does, in plain words: where it looks, and what is lost without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
Row = Mapping[str, Any]


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
    if others and (others[0]["accuracy"] >= OFTEN or others[0]["holds"]):
        return f"Looks at {_place(others[0])} in {_percent(others[0])} of cases"
    facts = [f"{_percent(others[0])} at {_place(others[0])}"] if others else []
    if (sure := row["values"].get("confidence")) is not None:
        facts.append(f"confidence {sure:.2f}")
    return f"Has no fixed place to look at ({', '.join(facts)})"


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


def _percent(role: Row) -> str:
    return f"{100 * float(role['accuracy']):.0f} %"

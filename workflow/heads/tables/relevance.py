"""Readings of relevance, each a propagation rule and a share: their names, and which one decides a claim.

A reading is written as `plain, signed by step`; its column of measures is `lrp_plain_signed_by_step`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import pandas as pd

SHARES = {"relevance": "signed by step", "relevance_of_sums": "signed of sums", "relevance_absolute": "absolute"}
"""The share in each column of `lrp.tsv`; see `heads.analysis.lrp.rows`."""
PAPERS_RULE = "plain"
PREFIX = "lrp_"

SIDE_BY_SIDE = {
    "plain, signed by step": "as written",
    "plain, signed of sums": "signed of sums",
    "plain, absolute": "absolute",
    "z-plus, signed by step": "z-plus",
}
"""Short names by reading. The first is the paper as written (Voita et al., sec. 4 and app. A.2), and decides; the next
two are the same rule with shares that a few steps cannot decide; the last represents the authors' released code, which
makes all parts positive, so that its shares are the same with and without signs."""


def relevance_columns(table: pd.DataFrame) -> dict[str, str]:
    """The column of each reading in a table of measures, in the order of the files."""
    return {reading_of(name): name for name in table.columns if name.startswith(PREFIX)}


def column_pattern(share: str) -> str:
    """The name of the column of measures for a share of SHARES, with a gap for the rule."""
    return f"{PREFIX}{{}}_{SHARES[share].replace(' ', '_')}"


def reading_of(column: str) -> str:
    """The reading of a column of measures."""
    rule, _, share = column.removeprefix(PREFIX).partition("_")
    return f"{rule}, {share.replace('_', ' ')}"


def is_shown(reading: str) -> bool:
    """Whether figures show this reading: all those of the paper's rule, and the absolute share of other rules."""
    rule, _, share = reading.partition(", ")
    return rule == PAPERS_RULE or share == SHARES["relevance_absolute"]


def side_by_side(readings: Iterable[str]) -> list[str]:
    """The readings of SIDE_BY_SIDE that are in `readings`, or else the first one there; the first returned decides."""
    there = list(dict.fromkeys(readings))
    return [reading for reading in SIDE_BY_SIDE if reading in there] or there[:1]


def with_other_readings(claims: pd.DataFrame) -> pd.DataFrame:
    """Add `other_readings` after `holds` in a table of claims: verdicts that differ from the deciding reading's.

    For example `absolute: yes, z-plus: unclear`; empty if all agree, and in rows of readings that do not decide.
    """
    decides, *others = side_by_side(reading for reading in claims["rule"] if reading) or [""]
    rows = claims.fillna({"holds": ""}).to_dict("records")
    said = {_key(row, row["rule"]): row["holds"] for row in rows}

    def note(row: Mapping[Hashable, Any]) -> str:
        verdicts = {SIDE_BY_SIDE[other]: said.get(_key(row, other), row["holds"]) for other in others}
        differing = {name: verdict or "not measured" for name, verdict in verdicts.items() if verdict != row["holds"]}
        return ", ".join(f"{name}: {verdict}" for name, verdict in differing.items())

    noted = claims.copy()
    notes = [note(row) if row["rule"] == decides else "" for row in rows]
    noted.insert(claims.columns.get_loc("holds") + 1, "other_readings", notes)
    return noted


def _key(row: Mapping[Hashable, Any], reading: str) -> tuple[Any, ...]:
    return (*(row[name] for name in ("experiment", "seed", "claim", "measure")), reading)

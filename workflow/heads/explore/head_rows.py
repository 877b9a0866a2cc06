"""Facts about each head of the unpruned model: measures, the cost of masking it, roles and word alignment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from heads.explore.needs import CROSS_ATTENTION
from heads.explore.wording import MEASURES, measure_of, number, worded
from heads.tables.labels import MINUS, function_label, relation_label
from heads.tables.picking import first_of
from heads.tables.reading import Frames
from heads.tables.roles import head_functions

HEAD = ["attention", "layer", "head"]
NOTHING = pd.DataFrame()
ROLE = ("accuracy", "low", "high", "baseline")
CROSS = {"accuracy": "share", "low": "low", "high": "high", "baseline": "offset_share"}
"""The same for cross-attention heads, each with its column in `cross_attention_roles.tsv`."""
CROSS_WORDS = {"being written": "now", "written last": "last", "written next": "next"}
"""The word on a cross-attention head that looks at the source of this target token."""
ALIGNMENT = {"aer": "aer", "low": "aer_low", "high": "aer_high", "offset": "offset", "offset_aer": "offset_aer"}
ALIGNMENT |= {"precision": "precision", "recall": "recall"}
"""The numbers shown for a head's word alignment, each with its column in `alignment_heads.tsv`."""


def measures_of(task: str, score: str, *tables: pd.DataFrame | None) -> list[dict[str, str]]:
    """The measures that have a value for any head, in the order of MEASURES, with readings of relevance last."""
    known = [table for table in tables if table is not None]
    found = {column: measure_of(column) for table in known for column in table.columns if table[column].notna().any()}
    order = [*MEASURES, *(column for column in found if column not in MEASURES)]
    return [worded(measure, task, score) for column in order if (measure := found.get(column))]


def head_rows(frames: Frames, tables: Mapping[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """A record for each head, in the order of `model.json`; see `heads.explore.content`.

    frames: of one experiment and seed; tables: by name, of the same experiment and seed.
    """
    heads = frames["model.json"][frames["model.json"]["kind"] == "baseline"]
    measures = _by_head(tables.get("measures"))
    masked = _by_head(tables.get("michel_table1"))
    roles = frames["roles.tsv"][frames["roles.tsv"]["kind"] == "baseline"]
    known = _roles(first_of(roles, "trees")) if len(roles) else {}
    if len(cross := frames.get(CROSS_ATTENTION, NOTHING)):
        known |= _cross_roles(cross)
    functions = _functions(heads, roles) if len(roles) else {}
    links = frames["alignment_heads.tsv"]
    aligned = _alignments(links) if len(links) else {}
    functions |= {place: "alignment" if one["aligns"] else "other" for place, one in aligned.items()}
    rows = []
    for attention, layer, head in heads[HEAD].itertuples(index=False):
        place = (attention, int(layer), int(head))
        own, without = measures.get(place, {}), masked.get(place, {})
        links_of = aligned.get(place)
        found, label = known.get(place, ([], ""))
        values = {column: number(own[column]) for column in own if measure_of(column)}
        rows.append(
            {
                **dict(zip(HEAD, place, strict=True)),
                "values": values | ({"aer": links_of["aer"]} if links_of else {}),
                "score_change": number(without.get("score_change")),
                "p_value": number(without.get("p_value")),
                "function": functions.get(place, ""),
                "label": label,
                "roles": found,
                "alignment": links_of,
            }
        )
    return rows


def _by_head(table: pd.DataFrame | None) -> dict[tuple[str, int, int], dict[str, Any]]:
    if table is None:
        return {}
    return {(row["attention"], int(row["layer"]), int(row["head"])): row for row in table.to_dict("records")}


def _alignments(rows: pd.DataFrame) -> dict[tuple[str, int, int], dict[str, Any]]:
    """How well each head's links agree with the given alignment, for the first step in the settings."""
    return {
        ("dec_enc", int(row["layer"]), int(row["head"])): {
            **{name: number(row[column]) for name, column in ALIGNMENT.items()},
            "pairs": int(row["pairs"]),
            "aligns": bool(row["aligns"]),
        }
        for row in first_of(rows, "step").to_dict("records")
    }


def _functions(heads: pd.DataFrame, roles: pd.DataFrame) -> dict[tuple[str, int, int], str]:
    found = head_functions({"model.json": heads, "roles.tsv": roles})[["layer", "head", "function"]]
    return {("enc_self", int(layer), int(head)): str(name) for layer, head, name in found.itertuples(index=False)}


def _roles(roles: pd.DataFrame) -> dict[tuple[str, int, int], tuple[list[dict[str, Any]], str]]:
    """For each encoder head, the roles that it was tested for and its label as in the paper's figures."""
    found = {}
    for (layer, head), rows in roles.groupby(["layer", "head"]):
        tried = [
            {
                "role": row["role"],
                "name": row["name"],
                "label": _role_label(row["role"], row["name"]),
                **{column: number(row[column]) for column in ROLE},
                "cases": int(row["cases"]),
                "holds": bool(row["holds"]),
            }
            for row in rows[(rows["cases"] > 0) & rows["accuracy"].notna()].to_dict("records")
        ]
        found["enc_self", int(layer), int(head)] = (tried, function_label(rows).replace("\n", " "))
    return found


def _cross_roles(rows: pd.DataFrame) -> dict[tuple[str, int, int], tuple[list[dict[str, Any]], str]]:
    """For each cross-attention head, the roles that it was tested for and a word for its clearest role."""
    found = {}
    for (layer, head), own in rows[rows["cases"] > 0].groupby(["layer", "head"]):
        tried = [
            {
                "role": "cross",
                "name": row["role"],
                "label": f"the source of the token {row['role']}",
                **{name: number(row[column]) for name, column in CROSS.items()},
                "cases": int(row["cases"]),
                "holds": bool(row["holds"]),
            }
            for row in own.to_dict("records")
        ]
        held = sorted((role for role in tried if role["holds"]), key=lambda role: role["accuracy"])
        found["dec_enc", int(layer), int(head)] = (tried, CROSS_WORDS[held[-1]["name"]] if held else "")
    return found


def _role_label(role: str, name: str) -> str:
    if role == "syntactic":
        return relation_label(name, short=False)
    if role == "rare":
        return f"looks at the {name}" if name == "rarest" else f"looks at {name}"
    return f"offset {name.replace('-', MINUS)} in {'words' if role == 'positional_words' else 'subwords'}"

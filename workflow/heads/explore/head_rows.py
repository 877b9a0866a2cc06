"""Facts about each head of the unpruned model: measures, the cost of masking it, roles and word alignment."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from heads.base.names import ALIGNMENT_FILE, CROSS_ATTENTION_FILE, HALVES, HEAD
from heads.explore.wording import MEASURES, measure_of, number, worded
from heads.tables.labels import MINUS, function_label, relation_label
from heads.tables.picking import first_of
from heads.tables.reading import Frames
from heads.tables.roles import head_functions

Place = tuple[str, int, int]
"""Kind of attention, layer and head."""
Tried = tuple[list[dict[str, Any]], str]
"""The roles that a head was tested for, and its label."""
NOTHING = pd.DataFrame()
ROLE = {"accuracy": "accuracy", "low": "low", "high": "high", "baseline": "baseline"}
"""The numbers shown for a role of an encoder head, each with its column in `roles.tsv`."""
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
    measures, masked = (
        by_head(tables[name].to_dict("records") if name in tables else ()) for name in ("measures", "michel_table1")
    )
    roles = frames["roles.tsv"][frames["roles.tsv"]["kind"] == "baseline"]
    known: dict[Place, Tried] = {}
    functions: dict[Place, str] = {}
    if len(roles):
        known = _roles(first_of(roles, "trees"))
        named = head_functions({"model.json": heads, "roles.tsv": roles})
        functions = {("enc_self", int(row.layer), int(row.head)): str(row.function) for row in named.itertuples()}
    if len(cross := frames.get(CROSS_ATTENTION_FILE, NOTHING)):
        known |= _cross_roles(cross)
    links = frames[ALIGNMENT_FILE]
    aligned = _alignments(links) if len(links) else {}
    functions |= {place: "alignment" if one["aligns"] else "other" for place, one in aligned.items()}
    rows = []
    for place in by_head(heads.to_dict("records")):
        own, without = measures.get(place, {}), masked.get(place, {})
        links_of = aligned.get(place)
        found, label = known.get(place, ([], ""))
        values = {column: number(own[column]) for column in own if measure_of(column)}
        rows.append({
            **dict(zip(HEAD, place, strict=True)),
            "values": values | ({"aer": links_of["aer"]} if links_of else {}),
            "score_change": number(without.get("score_change")),
            "p_value": number(without.get("p_value")),
            "function": functions.get(place, ""), "label": label, "roles": found, "alignment": links_of,
        })  # fmt: skip
    return rows


def by_head(rows: Iterable[dict[str, Any]]) -> dict[Place, dict[str, Any]]:
    """Rows by the head that they are about."""
    return {(row["attention"], int(row["layer"]), int(row["head"])): row for row in rows}


def _alignments(rows: pd.DataFrame) -> dict[Place, dict[str, Any]]:
    """How well each head's links agree with the given alignment, for the first step in the settings."""
    return {
        ("dec_enc", int(row["layer"]), int(row["head"])): {
            **{name: number(row[column]) for name, column in ALIGNMENT.items()},
            "pairs": int(row["pairs"]),
            "aligns": bool(row["aligns"]),
        }
        for row in first_of(rows, "step").to_dict("records")
    }


def _roles(roles: pd.DataFrame) -> dict[Place, Tried]:
    """For each encoder head, the roles that it was tested for and its label as in the paper's figures."""
    found = {}
    for (layer, head), rows in roles.groupby(["layer", "head"]):
        tested = rows[(rows["cases"] > 0) & rows["accuracy"].notna()].to_dict("records")
        tried = [_tried(row, row["role"], row["name"], _role_label(row["role"], row["name"]), ROLE) for row in tested]
        found["enc_self", int(layer), int(head)] = (tried, function_label(rows).replace("\n", " "))
    return found


def _cross_roles(rows: pd.DataFrame) -> dict[Place, Tried]:
    """For each cross-attention head, the roles that it was tested for and a word for its clearest role."""
    found = {}
    for (layer, head), own in rows[rows["cases"] > 0].groupby(["layer", "head"]):
        tested = own.to_dict("records")
        tried = [_tried(row, "cross", row["role"], f"the source of the token {row['role']}", CROSS) for row in tested]
        held = sorted((role for role in tried if role["holds"]), key=lambda role: role["accuracy"])
        found["dec_enc", int(layer), int(head)] = (tried, CROSS_WORDS[held[-1]["name"]] if held else "")
    return found


def _tried(row: Mapping[str, Any], role: str, name: str, label: str, columns: Mapping[str, str]) -> dict[str, Any]:
    numbers = {shown: number(row[column]) for shown, column in columns.items()}
    numbers |= {half: value for half in HALVES if (value := number(row.get(half))) is not None}
    return {
        "role": role,
        "name": name,
        "label": label,
        **numbers,
        "cases": int(row["cases"]),
        "holds": bool(row["holds"]),
    }


def _role_label(role: str, name: str) -> str:
    if role == "syntactic":
        return relation_label(name, short=False)
    if role == "rare":
        return f"looks at the {name}" if name == "rarest" else f"looks at {name}"
    return f"offset {name.replace('-', MINUS)} in {'words' if role == 'positional_words' else 'subwords'}"

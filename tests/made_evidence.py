"""Evidence made by hand, a line or two per model, so that each claim is tested where it holds and where it fails."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heads.base.names import ATTENTIONS
from heads.tables.curves import SETTLED
from heads.tables.evidence import Evidence
from heads.tables.reading import RUN_COLUMNS
from heads.tables.roles import head_functions
from heads.tables.verdicts import Finding

Layers = Sequence[Sequence[float]]
Roles = Sequence[Sequence[str | None]]
ROLES = {
    "p": ("positional", "-1"),
    "s": ("syntactic", "obj dependent-to-head"),
    "r": ("rare", "one of two rarest"),
}
EXCESS = {"has": (0.1, 0.3), "may": (-0.1, 0.2), "not": (-0.4, -0.2)}
"""Ends of the confidence interval of the excess over the threshold."""


def numbers(finding: Finding) -> object:
    """All values of a finding, for comparison up to rounding."""
    return pytest.approx(astuple(finding), nan_ok=True)


def run_of(model: tuple[str, ...]) -> dict[str, Any]:
    """RUN_COLUMNS of a model, given its kind, scope, lambda, and the number of heads if one was requested."""
    kind, scope, lam, keep = (*model, "")[:4]
    return dict(zip(RUN_COLUMNS, ("x", kind, scope, "", lam, keep, 1), strict=True))


def driven(evidence: Evidence) -> Evidence:
    """The same models, but those with a penalty have a requested number of heads instead."""

    def renamed(frame: pd.DataFrame) -> pd.DataFrame:
        if not len(frame):
            return frame
        told = (frame["lam"] != "") & (frame["lam"] != "0")
        keep = frame["keep"].mask(told, frame["lam"].str.replace(".", "", regex=False).str.lstrip("0"))
        return frame.assign(lam=frame["lam"].mask(told, ""), keep=keep)

    frames = {name: renamed(getattr(evidence, name)) for name in ("runs", "model", "functions", "roles")}
    return replace(evidence, **frames)


def heads_frame(relevance: Layers, confidence: Layers | None = None, survival: Layers | None = None) -> pd.DataFrame:
    """Measures of encoder heads, one list per layer."""
    empty = [[0.0] * len(layer) for layer in relevance]
    rows = [
        {"attention": "enc_self", "layer": layer, "head": head, "lrp": value,
         "confidence": (confidence or empty)[layer][head], "gate_survival_enc_self": (survival or empty)[layer][head]}
        for layer, values in enumerate(relevance)
        for head, value in enumerate(values)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def with_functions(heads: pd.DataFrame, models: Mapping[tuple[str, ...], Roles], blind: str = "") -> Evidence:
    """Models by the roles of their encoder heads: letters of ROLES, followed by "?" where the role is not ruled out.

    "" is a head without a role, None a pruned one. blind: a role without any cases.
    """
    live, roles = [], []
    for model, layers in models.items():
        for place, letters in [((i, j), text) for i, row in enumerate(layers) for j, text in enumerate(row)]:
            head = {"layer": place[0], "head": place[1]}
            live.append({**run_of(model), "attention": "enc_self", **head, "live": int(letters is not None)})
            for letter, (role, name) in ROLES.items() if letters is not None else ():
                known = letter in (letters or "") and f"{letter}?" not in (letters or "")
                state = "has" if known else "may" if letter in (letters or "") else "not"
                low, high = EXCESS[state]
                facts = {"trees": "gold", "role": role, "name": name, "accuracy": 0.5, "low": 0.4, "high": 0.6,
                         "baseline": 0.3, "excess_low": low, "excess_high": high, "cases": 0 if role == blind else 9,
                         "holds": int(known), "reaches": int(known)}  # fmt: skip
                roles.append({**run_of(model), **head, **facts})
    model_frame, roles_frame = pd.DataFrame(live), pd.DataFrame(roles)
    functions = head_functions({"model.json": model_frame, "roles.tsv": roles_frame})
    counts = model_frame.groupby(list(RUN_COLUMNS), sort=False)["live"].agg(enc_self="sum", of="size").reset_index()
    runs = counts.assign(share=counts["enc_self"] / counts["of"])
    return Evidence(heads, runs, model_frame, functions, roles_frame)


def scored(*rows: tuple[str, str, str, float, Any, Any]) -> Evidence:
    """Models by kind, scope, lambda, share of the scope's heads left, scores [1+B], and scores from scratch or None."""
    runs = [
        {**run_of((kind, scope, lam)), "share": share, "scores": np.array(scores, float),
         "scores_trained_on": None, "scores_scratch": None if scratch is None else np.array(scratch, float),
         "pair": "" if scratch is None else SETTLED}
        for kind, scope, lam, share, scores, scratch in rows
    ]  # fmt: skip
    frame = pd.DataFrame(runs)
    return Evidence(pd.DataFrame(), frame, pd.DataFrame(), pd.DataFrame(), pd.DataFrame())


def swept(**models: Mapping[str, Sequence[Sequence[int]]]) -> Evidence:
    """Models pruned in all kinds: whether each head of each layer of each kind is left. Names end in the lambda."""
    rows, runs = [], []
    for name, kinds in models.items():
        run = run_of(("pruned", "all", name.removeprefix("lam")))
        left = {kind: sum(map(sum, layers)) for kind, layers in kinds.items()}
        of = sum(len(layer) for layers in kinds.values() for layer in layers)
        runs.append({**run, **left, "total": sum(left.values()), "of": of})
        rows += [
            {**run, "attention": kind, "layer": layer, "head": head, "live": live}
            for kind in ATTENTIONS
            for layer, heads in enumerate(kinds.get(kind, ()))
            for head, live in enumerate(heads)
        ]
    empty = pd.DataFrame()
    return Evidence(empty, pd.DataFrame(runs), pd.DataFrame(rows), empty, empty)

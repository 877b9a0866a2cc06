"""The table of all measures of the unpruned model's heads, side by side (Voita et al., secs 4 to 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from heads.base.names import ATTENTIONS, HEAD, SCOPES
from heads.tables.picking import first_of, pruned_by_gates
from heads.tables.reading import Frames
from heads.tables.relevance import SHARES, column_pattern, is_shown, relevance_columns

KEYS = ("experiment", "seed", *HEAD)
LAST_LAMBDA = "gate_last_lambda"
FEWEST_HEADS = "gate_fewest_heads"
CAUSAL = {"causal_gate": "causal_gate", "effect": "causal_effect"}
NOT_COMPARED = ("metric", "causal_effect", LAST_LAMBDA, FEWEST_HEADS, "positional_words_accuracy")
"""Prefixes of columns that are not measures, or repeat another in other units or on words instead of subwords."""


def measures_table(frames: Frames) -> pd.DataFrame:
    """A row for each head of each baseline: KEYS, then a column for each measure, empty if it does not apply.

    `metric` is the metric of `score_lost`. frames: the files in `NEEDS["measures"]`. A new measure is one line in
    SOURCES.
    """
    joined = pd.concat([source(frames) for source in SOURCES], axis=1).reset_index()
    place = joined["attention"].map(ATTENTIONS.index)
    order = joined.assign(attention=place).sort_values([*KEYS], kind="stable").index
    return joined.loc[order].reset_index(drop=True)


def measure_names(table: pd.DataFrame) -> list[str]:
    """The columns of a table of measures to be correlated with each other; of relevance only the shown readings."""
    hidden = {column for reading, column in relevance_columns(table).items() if not is_shown(reading)}
    columns = [name for name in table.columns if name not in KEYS and name not in hidden]
    return [name for name in columns if not name.startswith(NOT_COMPARED)]


def _heads(frame: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """The baseline's rows by KEYS, with `columns` renamed."""
    chosen = frame[frame["kind"] == "baseline"].set_index(list(KEYS))
    return chosen[list(columns)].rename(columns=dict(columns))


def _spread(frame: pd.DataFrame, by: str, columns: Mapping[str, str]) -> pd.DataFrame:
    """As `_heads`, for files with several rows for each head, distinguished by `by`; new names have a gap for it."""
    parts = [
        _heads(frame[frame[by] == name], {column: pattern.format(name) for column, pattern in columns.items()})
        for name in frame[by].unique()
    ]
    return pd.concat(parts, axis=1) if parts else _heads(frame, {})


def _role_accuracies(frames: Frames) -> pd.DataFrame:
    """Each head's best accuracy as a positional and as a rare-word head, and its largest gain as a syntactic one."""
    roles = first_of(frames["roles.tsv"], "trees")
    roles = roles[roles["kind"] == "baseline"].assign(attention="enc_self")
    value = roles["accuracy"] - roles["baseline"].where(roles["role"] == "syntactic", 0)
    names = {"positional": "positional_accuracy", "positional_words": "positional_words_accuracy"}
    names |= {"syntactic": "syntactic_gain", "rare": "rare_accuracy"}
    best = roles.assign(value=value).groupby([*KEYS, "role"])["value"].max().unstack()
    return best.reindex(columns=list(names)).rename(columns=names)


def gate_survival(frames: Frames) -> pd.DataFrame:
    """By scope, the share of prunings (`pruned_by_gates`) that leave a head's gate open, and the hardest of them.

    The hardest has the largest lambda, 0 if there is none, or in an experiment without lambdas the fewest heads, all
    heads if there is none. The latter column exists only if there is such an experiment.
    """
    gates = frames["heads.tsv"]
    gates = gates[gates["kind"] == "gates"]
    chosen = [gates[:0].assign(target=""), *(pruned_by_gates(own) for _, own in gates.groupby(["experiment", "scope"]))]
    rows = pd.concat(chosen)
    one_run = rows.groupby(["experiment", "seed", "scope", "target"])["open"]
    rows = rows.assign(
        last=pd.to_numeric(rows["lam"]) * rows["open"],
        left=one_run.transform("sum").where(rows["open"] == 1, one_run.transform("size")).where(rows["lam"] == ""),
    )
    parts = []
    for scope in SCOPES:
        heads = rows[rows["scope"] == scope].groupby(list(KEYS))
        parts.append(heads["open"].mean().rename(f"gate_survival_{scope}"))
        parts.append(heads["last"].max().rename(f"{LAST_LAMBDA}_{scope}"))
        fewest = heads["left"].min().rename(f"{FEWEST_HEADS}_{scope}")
        parts += [fewest] if fewest.notna().any() else []
    return pd.concat(parts, axis=1)


SOURCES: tuple[Callable[[Frames], pd.DataFrame], ...] = (
    lambda frames: _heads(frames["ablation.tsv"], {"metric": "metric"}),
    lambda frames: _spread(frames["lrp.tsv"], "rule", {share: column_pattern(share) for share in SHARES}),
    lambda frames: _heads(frames["confidence.tsv"], {"confidence": "confidence"}),
    lambda frames: _spread(frames["importance.tsv"], "form", {"importance_normalised": "importance_{}"}),
    lambda frames: -_heads(frames["ablation.tsv"], {"score_change": "score_lost"}),
    lambda frames: _heads(frames["causal.tsv"], CAUSAL if len(frames["causal.tsv"]) else {}),
    _role_accuracies,
    gate_survival,
)
"""Each returns a frame with the index KEYS and a column for each of its measures."""

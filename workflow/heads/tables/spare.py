"""How many heads a model can spare: the most heads that pruning removes at a given loss of score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from heads.base.bootstrap import interval
from heads.base.names import BLEU, SCOPES
from heads.tables.evidence import ROUNDING, scores_of
from heads.tables.picking import heads_left, is_control, original, pruned_by_gates, run_order
from heads.tables.reading import RUN_COLUMNS, SCORED, Frames

LOSSES = (0.15, 0.25, 0.5, 1.0)
"""The BLEU that may be lost; the paper's headlines are 0.15 with 10 of 48 encoder heads and 0.25 with 4."""
AGAINST = ("control", "unpruned")
COLUMNS = (
    *("experiment", "seed", "scope", "metric", "against", "most_score_lost"),
    *("gone", "gone_surely", "gone_perhaps", "of", "score_change", "score_low", "score_high", "lam", "keep"),
)


def spare_table(frames: Frames) -> pd.DataFrame:
    """A row for each experiment, seed, scope, model to compare with, and largest loss of score allowed.

    `gone`: the most heads of the scope that are gone from a model pruned by gates whose score is at most
    `most_score_lost` lower; 0 if there is none. `gone_surely` and `gone_perhaps`: the same if the 95 % interval of the
    change lies entirely above that bound, or reaches it. `score_change` to `keep` describe the model of `gone`. The
    control is fine-tuned for as long at lambda = 0. Intervals are by bootstrap over test sentences.

    frames: scores, which are BLEU, `bleu_statistics.tsv` and `model.json`.
    """
    left = heads_left(frames["model.json"])
    runs = left.merge(scores_of(frames[SCORED], frames["bleu_statistics.tsv"]), on=list(RUN_COLUMNS))
    rows: list[dict[str, Any]] = []
    for _, own in runs.groupby(["experiment", "seed"], sort=False):
        for scope in SCOPES:
            rows += _rows(own, scope)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _rows(own: pd.DataFrame, scope: str) -> Iterator[dict[str, Any]]:
    """The rows of one experiment, seed and scope."""
    pruned = own[(own["kind"] == "pruned") & (own["scope"] == scope)]
    full = {"control": pruned[is_control(pruned)], "unpruned": own[own["kind"] == "baseline"]}
    swept = run_order(pruned_by_gates(pruned))
    if swept.empty:
        return
    kinds = SCOPES[scope]
    of = int(swept[[original(kind) for kind in kinds]].iloc[0].sum())
    gone = of - swept[[*kinds]].sum(axis=1).to_numpy(int)
    for against in AGAINST:
        if full[against].empty:
            continue
        changes = np.stack(swept["scores"].tolist()) - full[against]["scores"].iloc[0]
        low, high = interval(changes[:, 1:].T)
        for loss in LOSSES:
            fine = [ends >= -loss - ROUNDING for ends in (changes[:, 0], low, high)]
            most, surely, perhaps = (int(gone[are].max(initial=0)) for are in fine)
            model = {}
            if fine[0].any():
                place = int(np.where(fine[0], gone, -1).argmax())
                model = {"score_change": changes[place, 0], "score_low": low[place], "score_high": high[place]}
                model |= dict(swept.iloc[place][["lam", "keep"]])
            yield {
                **dict(zip(("experiment", "seed"), own[["experiment", "seed"]].iloc[0], strict=True)),
                **{"scope": scope, "metric": BLEU, "against": against, "most_score_lost": loss, "of": of},
                **{"gone": most, "gone_surely": surely, "gone_perhaps": perhaps, **model},
            }

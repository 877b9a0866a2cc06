"""Tables of pruning: scores and heads left (Voita et al., Table 2 and Fig 7), and how many heads a model can spare."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from heads.base.bootstrap import ROUNDING, interval
from heads.base.names import ATTENTIONS, BLEU, SCOPES
from heads.base.targets import CONTROL
from heads.tables.curves import falls, pair_of
from heads.tables.evidence import scores_of
from heads.tables.picking import heads_left, is_control, kept_share, original, pruned_by_gates, run_order
from heads.tables.reading import RUN_COLUMNS, SCORED, Frames

PAPER_COLUMNS = (
    *("paper_item", "paper_corpus", "paper_kept", "paper_of", "paper_score"),
    *("paper_score_minus_baseline", "paper_score_minus_scratch", "paper_tag"),
)
PRUNING_COLUMNS = (
    *(*RUN_COLUMNS, *ATTENTIONS, "total", "of", "kept_share_of_scope", "gates_strictly_between"),
    *("metric", "score", "against", "chrf", "matthews", "majority"),
    *("score_trained_on", "score_scratch", "score_control", "score_baseline"),
    *("score_minus_trained_on", "score_minus_scratch", "score_trained_on_minus_scratch"),
    *("score_minus_control", "score_minus_baseline", "dev_loss", "dev_loss_fall_percent"),
    *("dev_loss_fall_percent_trained_on", "dev_loss_fall_percent_scratch", "pair", "sentences", "signature"),
    *PAPER_COLUMNS,
)
LOSSES = (0.15, 0.25, 0.5, 1.0)
"""The BLEU that may be lost; the paper's headlines are 0.15 with 10 of 48 encoder heads and 0.25 with 4."""
AGAINST = ("control", "unpruned")
SPARE_COLUMNS = (
    *("experiment", "seed", "scope", "metric", "against", "most_score_lost"),
    *("gone", "gone_surely", "gone_perhaps", "of", "score_change", "score_low", "score_high", "lam", "keep"),
)


def pruning_table(frames: Frames, table2: pd.DataFrame, figure7: pd.DataFrame) -> pd.DataFrame:
    """A row for each baseline or pruned model: its score, those it is compared with, and the paper's BLEU.

    `trained_on` is the same heads cut out of the baseline and fine-tuned. A pair of that model, or else the pruned one,
    and the one from scratch is settled if the dev loss of both levelled off. Each translation model gets the WMT row of
    the paper's `table2` or `figure7` that is nearest by share of heads kept.
    """
    scores = {_key(row): row for row in frames[SCORED].to_dict("records")}
    between = frames["heads.tsv"].groupby(list(RUN_COLUMNS))["strictly_between"].sum().to_dict()
    fall = falls(frames["train.jsonl"], frames["model.json"])
    left = heads_left(frames["model.json"])
    left = left[left["kind"].isin(("baseline", "pruned"))].reset_index(drop=True)
    rows = []
    for row, share in zip(left.to_dict("records"), kept_share(left), strict=True):
        experiment, kind, scope, _, lam, keep, seed = _key(row)
        measured = scores[_key(row)]
        others = {
            "trained_on": (experiment, "selected", scope, "", lam, keep, seed),
            "scratch": (experiment, "scratch", scope, "", lam, keep, seed),
            "control": (experiment, "pruned", scope, *CONTROL.columns, seed),
            "baseline": (experiment, "baseline", "", "", "", "", seed),
        }
        compared = {name: scores[key]["score"] if key in scores else None for name, key in others.items()}
        ends, pair = ([fall.get(_key(row)), None, None], "") if kind == "baseline" else pair_of(fall, _key(row))
        fell = zip(("", "_trained_on", "_scratch"), ends, strict=True)
        paper = figure7 if scope == "enc_self" else table2
        of_paper = nearest_paper_row(paper[paper["corpus"] == "WMT"], share) if measured["metric"] == BLEU else {}
        rows.append(
            {
                **row,
                **{column: measured[column] for column in PRUNING_COLUMNS if column in measured},
                "kept_share_of_scope": share,
                **{f"dev_loss_fall_percent{side}": percent for side, percent in fell},
                "pair": pair,
                "score_trained_on_minus_scratch": _difference(compared["trained_on"], compared["scratch"]),
                "gates_strictly_between": between.get((experiment, "gates", scope, "", lam, keep, seed)),
                **{f"score_{name}": value for name, value in compared.items()},
                **{f"score_minus_{name}": _difference(measured["score"], value) for name, value in compared.items()},
                **of_paper,
            }
        )
    return pd.DataFrame(rows, columns=list(PRUNING_COLUMNS))


def nearest_paper_row(paper: pd.DataFrame, share: float) -> dict[str, Any]:
    """The paper's model with the share of heads nearest to `share`, as PAPER_COLUMNS; the larger one on a tie."""
    kept = "total" if "total" in paper else "enc_self"
    shares = paper[kept] / paper["of"]
    full = paper.loc[shares.idxmax()]
    row = paper.loc[(shares - share).abs().sort_values(kind="stable").index[0]]
    scratch = row.get("score_scratch")
    values = (
        "Table 2" if kept == "total" else "Fig 7",
        row["corpus"],
        row[kept],
        row["of"],
        row["score"],
        row["score"] - full["score"],
        _difference(row["score"], scratch),
        f"{row['tag']}, heads {row['total_tag']}" if kept == "total" else row["tag"],
    )
    return dict(zip(PAPER_COLUMNS, values, strict=True))


def _key(row: dict[Any, Any]) -> tuple[Any, ...]:
    return tuple(row[column] for column in RUN_COLUMNS)


def _difference(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None or pd.isna(other) else value - other


def spare_table(frames: Frames) -> pd.DataFrame:
    """A row for each experiment, seed, scope, model to compare with, and largest loss of score allowed.

    `gone`: the most heads of the scope that are gone from a model pruned by gates whose score is at most
    `most_score_lost` lower; 0 if there is none. `gone_surely` and `gone_perhaps`: the same if the 95 % interval of the
    change lies entirely above that bound, or reaches it. `score_change` to `keep` describe the model of `gone`. The
    control is fine-tuned for as long at lambda = 0. Intervals are by bootstrap over test sentences.
    """
    left = heads_left(frames["model.json"])
    runs = left.merge(scores_of(frames[SCORED], frames["bleu_statistics.tsv"]), on=list(RUN_COLUMNS))
    rows: list[dict[str, Any]] = []
    for _, own in runs.groupby(["experiment", "seed"], sort=False):
        for scope in SCOPES:
            rows += _spared(own, scope)
    return pd.DataFrame(rows, columns=list(SPARE_COLUMNS))


def _spared(own: pd.DataFrame, scope: str) -> Iterator[dict[str, Any]]:
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

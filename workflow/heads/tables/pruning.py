"""The table of pruning: scores and heads left for every pruned model (Voita et al., Table 2 and Fig 7)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from heads.base.names import ATTENTIONS, BLEU
from heads.base.targets import CONTROL
from heads.tables.curves import falls, pair_of
from heads.tables.picking import heads_left, kept_share
from heads.tables.reading import RUN_COLUMNS, SCORED, Frames

PAPER_COLUMNS = (
    *("paper_item", "paper_corpus", "paper_kept", "paper_of", "paper_score"),
    *("paper_score_minus_baseline", "paper_score_minus_scratch", "paper_tag"),
)
COLUMNS = (
    *(*RUN_COLUMNS, *ATTENTIONS, "total", "of", "kept_share_of_scope", "gates_strictly_between"),
    *("metric", "score", "against", "chrf", "matthews", "majority"),
    *("score_trained_on", "score_scratch", "score_control", "score_baseline"),
    *("score_minus_trained_on", "score_minus_scratch", "score_trained_on_minus_scratch"),
    *("score_minus_control", "score_minus_baseline", "dev_loss", "dev_loss_fall_percent"),
    *("dev_loss_fall_percent_trained_on", "dev_loss_fall_percent_scratch", "pair", "sentences", "signature"),
    *PAPER_COLUMNS,
)


def pruning_table(frames: Frames, table2: pd.DataFrame, figure7: pd.DataFrame) -> pd.DataFrame:
    """A row for each baseline or pruned model: its score, those it is compared with, and the paper's BLEU.

    frames: scores and `model.json` of baseline, pruned, selected and from-scratch runs, `heads.tsv` of gates runs,
    `train.jsonl` of all trainings. `trained_on` is the same heads cut out of the baseline and fine-tuned. A pair of
    that model, or else the pruned one, and the one from scratch is settled if the dev loss of both levelled off.
    table2, figure7: the paper's numbers; each translation model gets the WMT row that is nearest by share of heads
    kept.
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
                **{column: measured[column] for column in COLUMNS if column in measured},
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
    return pd.DataFrame(rows, columns=list(COLUMNS))


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

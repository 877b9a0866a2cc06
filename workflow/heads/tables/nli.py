"""Tables of models that classify: those of Michel et al. for BERT, and what pruning by gates leaves.

Where a table is made as that of translations is, it is made by the same function: files of classifiers have `accuracy`
in the place of `bleu`, and are read, and their tables written, by the name of their own score (`Need.score`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd

from heads.base.targets import CONTROL
from heads.tables.claims import COLUMNS as CLAIM_COLUMNS
from heads.tables.claims import claim_row, over_seeds, stated
from heads.tables.claims_michel import MICHEL_CLAIMS, free_share, heads_that_matter, layers_with_one_head
from heads.tables.floor import too_weak
from heads.tables.michel import HEAD, SIGNIFICANT, checkpoints_table, heads_table, layers_table
from heads.tables.pruning import heads_left, run_order
from heads.tables.reading import BESIDE_ACCURACY, RUN_COLUMNS, Frames
from heads.tables.seeds import with_spread
from heads.tables.settling import falls, pair_of
from heads.tables.verdicts import Finding

SCORES = ("accuracy", "matthews")
OTHERS = ("trained_on", "scratch", "control", "baseline")
PRUNING_COLUMNS = (
    *RUN_COLUMNS,
    *("total", "of", "gates_strictly_between", *SCORES, "majority", "examples"),
    *(f"accuracy_{other}" for other in OTHERS),
    *(f"accuracy_minus_{other}" for other in OTHERS),
    *("dev_loss", "dev_loss_fall_percent", "dev_loss_fall_percent_trained_on", "dev_loss_fall_percent_scratch", "pair"),
)
NOTICEABLE_ACCURACY = 1.0
"""Points of accuracy that may be lost unnoticed: our bound, the paper gives none."""
NO_HEADS = pd.DataFrame(columns=["model", "pair", "attention", "layer", "head", "bleu_change", "significant", "tag"])
NO_MOMENTS = pd.DataFrame(
    {
        "model": ["none"],
        "pair": [""],
        "epoch": [1],
        "bleu": [float("nan")],
        "masked_percent": [0.0],
        "kept_percent_low": [float("nan")],
        "kept_percent_high": [float("nan")],
        "tag": [""],
    }
)
"""The paper has no numbers of single heads of BERT, and none of BERT's moments of training."""


def nli_heads_table(frames: Frames) -> pd.DataFrame:
    """A row for every head masked alone, on test and on dev (Fig 1b), with Matthews' correlation on test."""
    table, keys = heads_table(frames, NO_HEADS).drop(columns="tag"), list(HEAD)
    found = frames["ablation.tsv"].set_index(keys)[[*BESIDE_ACCURACY["ablation.tsv"]]]
    significant = (found["matthews_p_value"] < SIGNIFICANT).astype(int)
    return table.join(found.assign(matthews_significant=significant), on=keys)


def nli_layers_table(frames: Frames, tables3_6: pd.DataFrame) -> pd.DataFrame:
    """A row for every layer cut to one head: the best on test (oracle, Table 3) and the best on dev (Table 6).

    Beside it the paper's layer at the same depth.
    """
    paper = tables3_6.rename(columns=lambda name: name.replace("accuracy", "bleu")).rename(columns={"task": "pair"})
    return layers_table(frames, paper)


def nli_checkpoints_table(frames: Frames) -> pd.DataFrame:
    """A row for every checkpoint of training and number of masked heads."""
    table = checkpoints_table(frames, NO_MOMENTS)
    return table.drop(columns=[name for name in table if name.startswith("paper_")])


def nli_pruning_table(frames: Frames) -> pd.DataFrame:
    """A row for the baseline and every model that gates pruned, beside what it is to be compared with.

    trained_on: the same heads cut out of the baseline, which was then trained on. frames: `accuracy.json` and
    `model.json` of baseline, pruned, selected and from-scratch runs, `heads.tsv` of gates, `train.jsonl` of trainings.
    """
    scores = {_key(row): row for row in frames["accuracy.json"].to_dict("records")}
    between = frames["heads.tsv"].groupby(list(RUN_COLUMNS))["strictly_between"].sum().to_dict()
    fall = falls(frames["train.jsonl"], frames["model.json"])
    left = run_order(heads_left(frames["model.json"]))
    rows = []
    for row in left[left["kind"].isin(("baseline", "pruned"))].to_dict("records"):
        experiment, kind, scope, method, lam, keep, seed = _key(row)
        own = scores[_key(row)]
        keys = {
            "trained_on": (experiment, "selected", scope, method, lam, keep, seed),
            "scratch": (experiment, "scratch", scope, method, lam, keep, seed),
            "control": (experiment, "pruned", scope, *CONTROL.columns, seed),
            "baseline": (experiment, "baseline", "", "", "", "", seed),
        }
        other = {name: scores[key]["accuracy"] if key in scores else None for name, key in keys.items()}
        ends, pair = ([fall.get(_key(row)), None, None], "") if kind == "baseline" else pair_of(fall, _key(row))
        rows.append(
            {
                **row,
                **{name: own[name] for name in (*SCORES, "majority", "examples")},
                "gates_strictly_between": between.get((experiment, "gates", scope, method, lam, keep, seed)),
                **{f"accuracy_{name}": value for name, value in other.items()},
                **{
                    f"accuracy_minus_{name}": None if value is None else own["accuracy"] - value
                    for name, value in other.items()
                },
                "dev_loss_fall_percent": ends[0],
                "dev_loss_fall_percent_trained_on": ends[1],
                "dev_loss_fall_percent_scratch": ends[2],
                "pair": pair,
            }
        )
    return pd.DataFrame(rows, columns=list(PRUNING_COLUMNS))


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[column] for column in RUN_COLUMNS)


def nli_claims_table(frames: Frames, paper: pd.DataFrame) -> pd.DataFrame:
    """A row for each experiment, seed and claim of Michel et al. about BERT, decided as those about translation are."""
    claims, rows = stated(paper).to_dict("records"), []
    for experiment, seed in frames["model.json"][["experiment", "seed"]].drop_duplicates().itertuples(index=False):
        mine = {
            name: frame[(frame["experiment"] == experiment) & (frame["seed"] == seed)] for name, frame in frames.items()
        }
        for claim in claims:
            found = claim_row(claim, CLAIMS[str(claim["id"])](mine), weak=too_weak(mine))
            rows.append({"experiment": experiment, "seed": seed, **found, "rule": ""})
    keys = ["experiment", "claim", "measure"]
    table = over_seeds(with_spread(pd.DataFrame(rows, columns=list(CLAIM_COLUMNS)), keys), keys)
    return table.drop(columns="rule")


CLAIMS: dict[str, Callable[[Frames], Finding]] = {
    **MICHEL_CLAIMS,
    "heads_that_matter": partial(heads_that_matter, noticeable=NOTICEABLE_ACCURACY),
    "layers_with_one_head": partial(layers_with_one_head, chosen="", noticeable=NOTICEABLE_ACCURACY),
    "layers_with_one_head_oracle": partial(layers_with_one_head, chosen="_oracle", noticeable=NOTICEABLE_ACCURACY),
    "free_share": partial(free_share, noticeable=NOTICEABLE_ACCURACY),
}

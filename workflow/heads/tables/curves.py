"""Curves on the dev set: whether trainings had converged, and when those from scratch catch up with pruned models."""

import math
from typing import Any

import pandas as pd

from heads.tables.picking import heads_left
from heads.tables.reading import RUN_COLUMNS, Frames

LAST = 0.1
"""The fall is measured over this last share of all updates that a model's weights have had."""
LEVELLED = 1.0
"""Percent of the dev loss; if it still changes by more, the training has not converged. Ours: the papers stop by
eye."""
SETTLED, NOT_SETTLED = "settled", "not settled"
Curves = dict[tuple[object, ...], pd.DataFrame]
"""The evaluations of each training on the dev set, in order, by the values of RUN_COLUMNS."""
BETTER = {"dev_loss": -1, "dev_bleu": 1}
"""Scores on the dev set, with 1 if higher is better and -1 if lower is better."""
SCRATCH_CURVE_COLUMNS = (
    *("experiment", "scope", "lam", "keep", "seed", "heads", "of", "updates_scratch"),
    *(f"{score}{of}" for score in BETTER for of in ("_unpruned", "_pruned", "_scratch", "_caught_up_at")),
    *("dev_loss_fall_percent_scratch", "dev_bleu_rise_scratch"),
)


def falls(curves: pd.DataFrame, model: pd.DataFrame) -> dict[tuple[object, ...], float]:
    """The `fall_of` each run with several evaluations on the dev set.

    curves: rows of `train.jsonl`. model: rows of `model.json`, whose `total_updates` include those of the model that a
    run started from.
    """
    totals = model.groupby(list(RUN_COLUMNS), sort=False)["total_updates"].first()
    found = {}
    for run, curve in curves.groupby(list(RUN_COLUMNS), sort=False):
        if run in totals.index and (fall := fall_of(curve, float(totals[run]))) is not None:
            found[run] = fall
    return found


def unlike_scratch(model: pd.DataFrame) -> set[tuple[object, ...]]:
    """The runs that cannot be compared with training from scratch after equally many updates.

    These are heads cut out and fine-tuned whose updates, in total, exceed those of the same heads from scratch. The
    updates behind a pretrained unpruned model are unknown: there only trainings that levelled off can be compared, so
    gates trained with their penalty from scratch, which are compared as they are, are excluded too. model: as in
    `falls`, and whether a model is `pretrained`.
    """
    totals = model.groupby(list(RUN_COLUMNS), sort=False)["total_updates"].first().to_dict()
    scratch = {(experiment, *rest): total for (experiment, kind, *rest), total in totals.items() if kind == "scratch"}
    pretrained = {*model[model["pretrained"] == 1]["experiment"]}
    return {
        (experiment, kind, *rest)
        for (experiment, kind, *rest), total in totals.items()
        if (kind == "selected" and total > scratch.get((experiment, *rest), math.inf))
        or (kind == "pruned_from_scratch" and experiment in pretrained)
    }


def fall_of(curve: pd.DataFrame, total: float) -> float | None:
    """The fall in percent over the last tenth of `total` updates, from `update` and `dev_loss` of one training.

    Measured between the last evaluation on the dev set and the one nearest to a tenth before it, and rescaled to a
    tenth if the two are closer together or further apart. None with fewer than two evaluations.
    """
    looks = curve.sort_values("update")
    if len(looks) < 2:
        return None
    end, before = looks.iloc[-1], looks.iloc[:-1]
    start = before.loc[(before["update"] - (end["update"] - LAST * total)).abs().idxmin()]
    pace = math.log(end["dev_loss"] / start["dev_loss"]) / (end["update"] - start["update"])
    return 100 * (1 - math.exp(pace * LAST * total))


def pair_of(fall: dict[tuple[object, ...], float], run: tuple[object, ...]) -> tuple[list[float | None], str]:
    """The falls of a pruned model, of the same heads fine-tuned and from scratch, and whether the pair is settled.

    run: the pruned model by RUN_COLUMNS. Heads that were cut out and fine-tuned, if any, replace it in the pair.
    """
    experiment, _, *rest = run
    found = [fall.get((experiment, kind, *rest)) for kind in ("gates", "selected", "scratch")]
    return found, settled(found[0] if found[1] is None else found[1], found[2])


def settled(*fall_percents: float | None) -> str:
    """Whether all trainings of a comparison levelled off: "settled", "not settled", or "" if a fall is unknown."""
    if any(fall is None or math.isnan(fall) for fall in fall_percents):
        return ""
    return SETTLED if all(abs(fall) < LEVELLED for fall in fall_percents if fall is not None) else NOT_SETTLED


def scratch_curve_table(frames: Frames) -> pd.DataFrame:
    """A row for each model that was trained from scratch with the heads of a pruned one.

    `_pruned`: of the pruned model at its end, or of the same heads cut out of the unpruned model and fine-tuned, if
    that was done. `_caught_up_at`: the first update at which scratch is no worse, empty if it never is. How fast
    scratch still improves: the percentage of its dev loss and the BLEU gained in its last tenth.
    """
    curves = curves_of(frames)
    left = heads_left(frames["model.json"])
    rows = []
    for row in left[left["kind"] == "scratch"].to_dict("records"):
        run = tuple(row[column] for column in RUN_COLUMNS)
        own = {"heads": row["total"], **{column: row[column] for column in SCRATCH_CURVE_COLUMNS if column in row}}
        rows.append(own | _compared(curves, run))
    return pd.DataFrame(rows, columns=list(SCRATCH_CURVE_COLUMNS))


def curves_of(frames: Frames) -> Curves:
    """The curves of all runs whose `train.jsonl` is in frames."""
    by_run = frames["train.jsonl"].groupby(list(RUN_COLUMNS), sort=False)
    return {run: curve.sort_values("update") for run, curve in by_run}


def _compared(curves: Curves, run: tuple[object, ...]) -> dict[str, Any]:
    """The columns that compare the curve of a run from scratch with its pruned and its unpruned model."""
    experiment, _, *rest = run
    scratch, unpruned = curves[run], curves.get((experiment, "baseline", "", "", "", "", run[-1]))
    # Of the same heads fine-tuned, or else of the gates that left them.
    pruned = curves.get((experiment, "selected", *rest), curves.get((experiment, "gates", *rest)))
    last = int(scratch["update"].iloc[-1])
    found: dict[str, Any] = {"updates_scratch": last, "dev_loss_fall_percent_scratch": fall_of(scratch, last)}
    for score, sign in BETTER.items():
        ends = {"unpruned": unpruned, "pruned": pruned, "scratch": scratch}
        found |= {f"{score}_{name}": None if curve is None else curve[score].iloc[-1] for name, curve in ends.items()}
        if pruned is not None:
            there = scratch[sign * (scratch[score] - pruned[score].iloc[-1]) >= 0]["update"]
            found[f"{score}_caught_up_at"] = None if there.empty else int(there.iloc[0])
    before = scratch[scratch["update"] <= (1 - LAST) * last]
    rise = None if before.empty else scratch["dev_bleu"].iloc[-1] - before["dev_bleu"].iloc[-1]
    return found | {"dev_bleu_rise_scratch": rise}

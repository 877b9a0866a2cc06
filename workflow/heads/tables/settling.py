"""Whether a training had converged when it was stopped: how far its dev loss still fell."""

from __future__ import annotations

import math

import pandas as pd

from heads.tables.reading import RUN_COLUMNS

LAST = 0.1
"""The fall is measured over this last share of all updates that a model's weights have had."""
LEVELLED = 1.0
"""Percent of the dev loss; if it still changes by more, the training has not converged. Ours: the papers stop by
eye."""
SETTLED, NOT_SETTLED = "settled", "not settled"


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
        or (kind == "penalty_scratch" and experiment in pretrained)
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

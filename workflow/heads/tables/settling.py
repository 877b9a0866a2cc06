"""Whether a training had ended when it was stopped: how far the dev loss still fell."""

from __future__ import annotations

import math

import pandas as pd

from heads.tables.reading import RUN_COLUMNS

LAST = 0.1
"""The share of all updates that a model's weights have had over which the fall is measured."""
LEVELLED = 1.0
"""Percent of the dev loss; a training that still falls by more has not ended. Ours: the papers stop by eye."""
SETTLED, NOT_SETTLED = "settled", "not settled"


def falls(curves: pd.DataFrame, model: pd.DataFrame) -> dict[tuple[object, ...], float]:
    """By run, the percent of its dev loss that each training still lost over its last tenth; below zero if it rose.

    curves: rows of `train.jsonl`. model: those of `model.json`, with `total_updates`, in which the updates of the model
    that a run started from are counted in. A run with fewer than two looks at the dev set has none.
    """
    totals = model.groupby(list(RUN_COLUMNS), sort=False)["total_updates"].first()
    found = {}
    for run, curve in curves.groupby(list(RUN_COLUMNS), sort=False):
        if run in totals.index and (fall := fall_of(curve, float(totals[run]))) is not None:
            found[run] = fall
    return found


def unlike_scratch(model: pd.DataFrame) -> set[tuple[object, ...]]:
    """The runs that a comparison after equally many updates, one side of them from scratch, has to do without.

    Those of heads cut out and trained on whose updates, all told, are more than those of the same from scratch. Where
    the unpruned model is pretrained nobody counted the updates that it came with: there only trainings that levelled
    can be compared, so gates trained with their penalty from scratch, which are compared as they are, are among them.
    model: as in `falls`, and whether a model is `pretrained`.
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

    Measured between the last look at the dev set and the one nearest to a tenth before it, at the pace between the two
    where they lie closer or further apart. None with fewer than two looks.
    """
    looks = curve.sort_values("update")
    if len(looks) < 2:
        return None
    end, before = looks.iloc[-1], looks.iloc[:-1]
    start = before.loc[(before["update"] - (end["update"] - LAST * total)).abs().idxmin()]
    pace = math.log(end["dev_loss"] / start["dev_loss"]) / (end["update"] - start["update"])
    return 100 * (1 - math.exp(pace * LAST * total))


def pair_of(fall: dict[tuple[object, ...], float], run: tuple[object, ...]) -> tuple[list[float | None], str]:
    """How far a pruned model, the same heads trained on, and the same from scratch still fell; and the pair's word.

    run: the pruned model as in RUN_COLUMNS. Heads that were cut out and trained on stand for it where there are any.
    """
    experiment, _, *rest = run
    found = [fall.get((experiment, kind, *rest)) for kind in ("gates", "selected", "scratch")]
    return found, settled(found[0] if found[1] is None else found[1], found[2])


def settled(*fall_percents: float | None) -> str:
    """Whether all trainings of a comparison had levelled: "settled", "not settled", or "" if one is not known."""
    if any(fall is None or math.isnan(fall) for fall in fall_percents):
        return ""
    return SETTLED if all(abs(fall) < LEVELLED for fall in fall_percents if fall is not None) else NOT_SETTLED

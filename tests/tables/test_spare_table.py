"""How many heads can go at what loss, against counts by hand from given scores."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fake_results import World, write_results
from heads.base.names import ATTENTIONS, SCOPES
from heads.tables import pruning
from heads.tables.catalogue import TABLES
from heads.tables.reading import RUN_COLUMNS, Frames, load_runs

LAMS = ("0.002", "0.01", "0.05")


@pytest.fixture
def frames(tmp_path: Path) -> Frames:
    world = World(layers=2, heads=4, lams=LAMS, seeds=(3, 5))
    return load_runs(TABLES["spare"].need, write_results(tmp_path / "x", world))


def given(monkeypatch: pytest.MonkeyPatch, scores: dict[tuple[str, str], list[float]], other: list[float]) -> None:
    """Set BLEU of all sentences and of draws to `scores` by scope and lambda, and to `other` for all other models."""

    def of(bleu: pd.DataFrame, statistics: pd.DataFrame) -> pd.DataFrame:
        runs = bleu[[*RUN_COLUMNS]]
        found = [np.array(scores.get((run.scope, run.lam), other)) for run in runs.itertuples(index=False)]
        return runs.assign(scores=pd.Series(found, index=runs.index, dtype=object))

    monkeypatch.setattr(pruning, "scores_of", of)


def left(frames: Frames, seed: int, scope: str, lam: str) -> int:
    model = frames["model.json"]
    own = model[
        (model["kind"] == "pruned") & (model["scope"] == scope) & (model["lam"] == lam) & (model["seed"] == seed)
    ]
    return int(own[own["attention"].isin(SCOPES[scope])]["live"].sum())


def row(table: pd.DataFrame, **place: Any) -> dict[str, Any]:
    for column, value in place.items():
        table = table[table[column] == value]
    (found,) = table.to_dict("records")
    return {str(name): value for name, value in found.items()}


def test_the_most_heads_are_gone_of_the_models_that_lose_no_more(
    frames: Frames, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The middle model's draws lose from 0.2 to 0.6, those of the last from 0.4 to 1.4."""
    scores = {("enc_self", "0.002"): [30.1, 30.1, 30.1], ("enc_self", "0.01"): [29.7, 29.4, 29.8],
              ("enc_self", "0.05"): [29.1, 28.6, 29.6]}  # fmt: skip
    given(monkeypatch, scores, [30.0, 30.0, 30.0])
    table = pruning.spare_table(frames)
    gone = [8 - left(frames, 3, "enc_self", lam) for lam in LAMS]
    assert gone[0] < gone[1] < gone[2]
    where: dict[str, Any] = {"seed": 3, "scope": "enc_self", "against": "unpruned"}
    found = {loss: row(table, most_score_lost=loss, **where) for loss in pruning.LOSSES}
    columns = ("gone_surely", "gone", "gone_perhaps")
    assert [[found[loss][name] for name in columns] for loss in pruning.LOSSES] == [
        [gone[0], gone[0], gone[0]], [gone[0], gone[0], gone[1]],
        [gone[0], gone[1], gone[2]], [gone[1], gone[2], gone[2]],
    ]  # fmt: skip
    best = found[0.5]
    assert (best["lam"], best["of"]) == ("0.01", 8)
    assert [best[name] for name in ("score_change", "score_low", "score_high")] == pytest.approx([-0.3, -0.6, -0.2])


def test_against_the_control_the_same_draws_are_set_against_each_other(
    frames: Frames, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model varies as the control does: its loss of 0.1 is sure."""
    scores = {("all", lam): [19.9, 17.9, 21.9] for lam in LAMS}
    given(monkeypatch, {**scores, ("all", "0"): [20.0, 18.0, 22.0]}, [30.0, 29.0, 31.0])
    table = pruning.spare_table(frames)
    fewest = max(8 * len(ATTENTIONS) - left(frames, 5, "all", lam) for lam in LAMS)
    found = row(table, seed=5, scope="all", against="control", most_score_lost=0.15)
    assert found["gone_surely"] == found["gone"] == fewest and found["score_low"] == pytest.approx(-0.1)
    unpruned = row(table, seed=5, scope="all", against="unpruned", most_score_lost=1.0)
    assert unpruned["gone"] == unpruned["gone_perhaps"] == 0 and np.isnan(unpruned["score_change"])

"""Curves on the dev set: how far losses still fell at the end, and when heads from scratch catch up with pruned."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from drawn_figures import draw
from fake_results import World, write_results
from heads.base.files import read_json, write_json, write_lines
from heads.tables.catalogue import TABLES
from heads.tables.curves import fall_of, scratch_curve_table, settled
from heads.tables.pruning import pruning_table
from heads.tables.reading import Frames, load_reference, load_runs


def looks(*rows: tuple[int, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["update", "dev_loss"])


def test_the_fall_is_that_over_the_last_tenth_of_all_updates_that_the_weights_have_had() -> None:
    curve = looks((100, 9.0), (800, 2.0), (900, 1.0), (1000, 0.9))
    assert fall_of(curve, 1000) == pytest.approx(10)
    assert fall_of(curve, 2000) == pytest.approx(100 * (1 - 0.9 / 2.0))
    assert fall_of(curve.iloc[::-1], 1000) == pytest.approx(10)
    assert fall_of(looks((900, 1.0), (1000, 1.2)), 1000) == pytest.approx(-20)


def test_where_no_look_lies_a_tenth_before_the_end_the_pace_between_two_looks_is_taken() -> None:
    """The loss falls by the factor 0.9 every 50 updates, and so by 0.81 every 100."""
    assert fall_of(looks((950, 1.0), (1000, 0.9)), 1000) == pytest.approx(19)
    assert fall_of(looks((0, 1.0), (1000, 0.9**20)), 1000) == pytest.approx(19)
    assert fall_of(looks((1000, 0.9)), 1000) is None


@pytest.mark.parametrize(
    ("ends", "word"),
    [((0.9, -0.9), "settled"), ((0.9, 1.1), "not settled"), ((-1.1, 0.0), "not settled"), ((0.0, None), ""),
     ((float("nan"), 0.0), "")],
)  # fmt: skip
def test_a_pair_is_settled_where_both_losses_had_levelled(ends: tuple[float | None, float | None], word: str) -> None:
    assert settled(*ends) == word


def test_the_pruning_table_says_how_far_each_side_of_a_pair_had_come(tmp_path: Path) -> None:
    """Gates had 300 updates after 3000: a tenth of all is 330, and in the last 200 the loss fell from 1.5 to 0.995."""
    need = TABLES["pruning"].need
    runs = write_results(tmp_path / "made", World(lams=("0.1",)))
    table = pruning_table(load_runs(need, runs), *map(load_reference, need.reference))
    rows = {(row["kind"], row["scope"], row["lam"]): row for row in table.to_dict("records")}
    assert rows["baseline", "", ""]["dev_loss_fall_percent"] == pytest.approx(5)
    pruned = rows["pruned", "all", "0.1"]
    assert pruned["dev_loss_fall_percent"] == pytest.approx(100 * (1 - (0.995 / 1.5) ** 1.65))
    assert pruned["dev_loss_fall_percent_scratch"] == pytest.approx(100 * (1 - 0.995**1.1))
    assert pruned["pair"] == "not settled"
    encoder = rows["pruned", "enc_self", "0.1"]
    assert encoder["dev_loss_fall_percent"] == pytest.approx(100 * (1 - (0.95 / 1.5) ** 1.65))
    assert encoder["pair"] == ""


def test_where_heads_were_cut_out_and_trained_on_it_is_that_training_which_settles_a_pair(tmp_path: Path) -> None:
    need = TABLES["pruning"].need
    runs = write_results(tmp_path / "made", World(lams=("0.1", "0.3")))
    gates, scratch = (tmp_path / f"made/{kind}/all/lam-0.1/seed-1" for kind in ("gates", "scratch"))
    added = tmp_path / "made/selected/all/lam-0.1/seed-1"
    shutil.copytree(scratch, added)
    write_json(added / "bleu.json", {**read_json(added / "bleu.json"), "bleu": 95.5})
    for folder, last in ((gates, 0.9), (added, 0.991), (scratch, 0.994)):
        lines = [json.dumps({"update": n, "dev_loss": loss}) for n, loss in ((2970, 1.0), (3300, last))]
        write_lines(folder / "train.jsonl", lines)
    table = pruning_table(load_runs(need, [*runs, added]), *map(load_reference, need.reference))
    rows = {(row["kind"], row["scope"], row["lam"]): row for row in table.to_dict("records")}
    pair = rows["pruned", "all", "0.1"]
    falls = [pair[f"dev_loss_fall_percent{side}"] for side in ("", "_trained_on", "_scratch")]
    assert falls == pytest.approx([10, 0.9, 0.6])
    assert (pair["pair"], rows["pruned", "all", "0.3"]["pair"]) == ("settled", "not settled")
    assert pair["score_trained_on"] == 95.5
    assert pair["score_trained_on_minus_scratch"] == pytest.approx(95.5 - pair["score_scratch"])


NEED = TABLES["scratch_curve"].need
SCRATCH = [(100, 8.0, 0.0), (500, 2.0, 20.0), (900, 1.0, 31.0), (1000, 0.9, 30.0)]


def written(run: Path, *rows: tuple[int, float, float | None]) -> None:
    lines = [{"update": n, "dev_loss": loss, **({} if bleu is None else {"dev_bleu": bleu})} for n, loss, bleu in rows]
    write_lines(run / "train.jsonl", [json.dumps(line) for line in lines])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Results whose one pruned model of all kinds of attention was trained from scratch as well."""
    write_results(tmp_path / "made", World(lams=("0.1",)))
    return tmp_path / "made"


def told(folder: Path, *more: Path) -> tuple[Frames, dict[str, Any]]:
    runs = [folder / "baseline/seed-1", *(folder / f"{kind}/all/lam-0.1/seed-1" for kind in ("gates", "scratch"))]
    frames = load_runs(NEED, [*runs, *more])
    (row,) = scratch_curve_table(frames).to_dict("records")
    return frames, row


def test_the_first_update_from_which_scratch_is_no_worse_than_the_pruned_model_at_its_end(folder: Path) -> None:
    written(folder / "scratch/all/lam-0.1/seed-1", *reversed(SCRATCH))
    written(folder / "gates/all/lam-0.1/seed-1", (100, 0.5, 40.0), (400, 1.0, 29.0))
    written(folder / "baseline/seed-1", (3000, 0.7, 33.0))
    frames, row = told(folder)
    assert (row["dev_loss_caught_up_at"], row["dev_bleu_caught_up_at"]) == (900, 900)
    ends = [row[f"{score}_{of}"] for score in ("dev_loss", "dev_bleu") for of in ("unpruned", "pruned", "scratch")]
    assert ends == [0.7, 1.0, 0.9, 33.0, 29.0, 30.0]
    assert row["updates_scratch"] == 1000
    assert row["dev_loss_fall_percent_scratch"] == pytest.approx(10)
    assert row["dev_bleu_rise_scratch"] == pytest.approx(-1)
    live = frames["model.json"].query("kind == 'scratch'")["live"]
    assert (row["heads"], row["of"]) == (live.sum(), len(live))


def test_heads_that_were_cut_out_and_trained_on_stand_for_the_pruned_model(folder: Path) -> None:
    written(folder / "scratch/all/lam-0.1/seed-1", *SCRATCH)
    written(folder / "gates/all/lam-0.1/seed-1", (100, 1.5, 10.0), (400, 1.0, 29.0))
    added = folder / "selected/all/lam-0.1/seed-1"
    shutil.copytree(folder / "scratch/all/lam-0.1/seed-1", added)
    written(added, (100, 1.0, 31.5), (400, 2.0, 32.0))
    row = told(folder, added)[1]
    assert (row["dev_loss_pruned"], row["dev_bleu_pruned"]) == (2.0, 32.0)
    assert row["dev_loss_caught_up_at"] == 500
    assert row["dev_bleu_caught_up_at"] is None or row["dev_bleu_caught_up_at"] != row["dev_bleu_caught_up_at"]


def lines(axes: Axes) -> dict[str, list[float]]:
    return {str(line.get_label()): np.asarray(line.get_ydata(), dtype=float).tolist() for line in axes.lines}


def test_the_figure_shows_the_curve_between_the_two_levels(folder: Path) -> None:
    written(folder / "scratch/all/lam-0.1/seed-1", *SCRATCH)
    written(folder / "gates/all/lam-0.1/seed-1", (400, 1.0, 29.0))
    written(folder / "baseline/seed-1", (3000, 0.7, 33.0))
    frames, row = told(folder)
    own = f"{row['heads']} heads"
    loss, bleu = map(lines, draw("scratch_curves", frames).axes)
    assert loss == {f"{own}, from scratch": [8, 2, 1, 0.9], f"{own}, pruned": [1, 1], "unpruned": [0.7, 0.7]}
    assert bleu == {f"{own}, from scratch": [0, 20, 31, 30], f"{own}, pruned": [29, 29], "unpruned": [33, 33]}


def test_in_the_figure_the_same_heads_are_fine_tuned_only_where_they_were_cut_out(folder: Path) -> None:
    for kind in ("baseline/seed-1", "gates/all/lam-0.1/seed-1", "scratch/all/lam-0.1/seed-1"):
        written(folder / kind, (100, 2.0, 5.0), (1000, 1.0, 7.0))
    added = folder / "selected/all/lam-0.1/seed-1"
    shutil.copytree(folder / "scratch/all/lam-0.1/seed-1", added)
    written(added, (400, 0.5, 32.0))
    frames, row = told(folder, added)
    loss, bleu = map(lines, draw("scratch_curves", frames).axes)
    assert loss[f"{row['heads']} heads, fine-tuned"] == [0.5, 0.5] and {*loss} == {*bleu}
    assert not [label for label in loss if label.endswith("heads, pruned")]


def test_a_dev_set_that_was_never_translated_is_said_to_be_not_measured(folder: Path) -> None:
    for kind in ("baseline/seed-1", "gates/all/lam-0.1/seed-1", "scratch/all/lam-0.1/seed-1"):
        written(folder / kind, (100, 2.0, None), (1000, 1.0, None))
    frames, row = told(folder)
    assert row["dev_bleu_scratch"] is None or row["dev_bleu_scratch"] != row["dev_bleu_scratch"]
    loss, bleu = draw("scratch_curves", frames).axes
    assert len(loss.lines) == 3 and not bleu.lines
    assert [text.get_text() for text in bleu.texts] == ["not measured"]

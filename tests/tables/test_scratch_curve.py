"""When heads from random weights catch up with the pruned model: by curves of a few looks, worked out by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from fake_results import World, write_results
from heads.base.files import write_lines
from heads.figures.pruning import scratch_curves
from heads.figures.style import styled
from heads.tables.curves import scratch_curve_table
from heads.tables.needs import NEEDS
from heads.tables.reading import Frames, load_runs

NEED = NEEDS["scratch_curve"]
SCRATCH = [(100, 8.0, 0.0), (500, 2.0, 20.0), (900, 1.0, 31.0), (1000, 0.9, 30.0)]


def looks(run: Path, *rows: tuple[int, float, float | None]) -> None:
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
    looks(folder / "scratch/all/lam-0.1/seed-1", *reversed(SCRATCH))
    looks(folder / "gates/all/lam-0.1/seed-1", (100, 0.5, 40.0), (400, 1.0, 29.0))
    looks(folder / "baseline/seed-1", (3000, 0.7, 33.0))
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
    looks(folder / "scratch/all/lam-0.1/seed-1", *SCRATCH)
    looks(folder / "gates/all/lam-0.1/seed-1", (100, 1.5, 10.0), (400, 1.0, 29.0))
    added = folder / "selected/all/lam-0.1/seed-1"
    shutil.copytree(folder / "scratch/all/lam-0.1/seed-1", added)
    looks(added, (100, 1.0, 31.5), (400, 2.0, 32.0))
    row = told(folder, added)[1]
    assert (row["dev_loss_pruned"], row["dev_bleu_pruned"]) == (2.0, 32.0)
    assert row["dev_loss_caught_up_at"] == 500
    assert row["dev_bleu_caught_up_at"] is None or row["dev_bleu_caught_up_at"] != row["dev_bleu_caught_up_at"]


def panels(frames: Frames) -> list[Axes]:
    with styled():
        return list(scratch_curves(frames, "made").axes)


def lines(axes: Axes) -> dict[str, list[float]]:
    return {str(line.get_label()): np.asarray(line.get_ydata(), dtype=float).tolist() for line in axes.lines}


def test_the_figure_shows_the_curve_between_the_two_levels(folder: Path) -> None:
    looks(folder / "scratch/all/lam-0.1/seed-1", *SCRATCH)
    looks(folder / "gates/all/lam-0.1/seed-1", (400, 1.0, 29.0))
    looks(folder / "baseline/seed-1", (3000, 0.7, 33.0))
    frames, row = told(folder)
    own = f"{row['heads']} heads"
    loss, bleu = map(lines, panels(frames))
    assert loss == {f"{own}, from scratch": [8, 2, 1, 0.9], f"{own}, pruned": [1, 1], "unpruned": [0.7, 0.7]}
    assert bleu == {f"{own}, from scratch": [0, 20, 31, 30], f"{own}, pruned": [29, 29], "unpruned": [33, 33]}


def test_a_dev_set_that_was_never_translated_is_said_to_be_not_measured(folder: Path) -> None:
    for kind in ("baseline/seed-1", "gates/all/lam-0.1/seed-1", "scratch/all/lam-0.1/seed-1"):
        looks(folder / kind, (100, 2.0, None), (1000, 1.0, None))
    frames, row = told(folder)
    assert row["dev_bleu_scratch"] is None or row["dev_bleu_scratch"] != row["dev_bleu_scratch"]
    loss, bleu = panels(frames)
    assert len(loss.lines) == 3 and not bleu.lines
    assert [text.get_text() for text in bleu.texts] == ["not measured"]

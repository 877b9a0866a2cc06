"""Several seeds: mean and spread in tables and figures, against sums by hand."""

from math import sqrt
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from drawn_figures import draw
from fake_results import World, write_results
from heads.base.files import read_tsv
from heads.base.names import TRANSLATION
from heads.base.runs import run_of
from heads.figures.style import mean_line, seed_note, styled
from heads.tables.catalogue import TABLES
from heads.tables.gathering import table_of_runs, write_frame
from heads.tables.seeds import with_spread

KEY = ("experiment", "lam")
NEVER = ("low", "high", "p_value", "chance", "limit", "sentences")
FRAME = pd.DataFrame(
    {"experiment": "x", "lam": ["0.1", "0.3", "0.1", "0.3"], "seed": [1, 1, 2, 2], "score": [20.0, 10.0, 23.0, np.nan],
     "layer": [2, 1, 2, 0], "of": 36, "holds": ["yes", "no", "yes", "yes"], "paper_score": [30.0, 30.0, 30.0, 29.0],
     **{name: [0.0, 1.0, 2.0, 3.0] for name in NEVER}}
)  # fmt: skip


def test_mean_and_sample_deviation_follow_the_seeds_of_each_group(tmp_path: Path) -> None:
    write_frame(tmp_path / "t.tsv", with_spread(FRAME, KEY))
    rows = read_tsv(tmp_path / "t.tsv")
    assert [(r["lam"], r["seed"]) for r in rows] == [
        (lam, s) for lam in ("0.1", "0.3") for s in ("1", "2", "mean", "sd")
    ]
    assert [r["score"] for r in rows[:4]] == ["20.00", "23.00", "21.50", f"{sqrt(1.5**2 + 1.5**2):.2f}"]
    # One seed has no score: the mean is that of the other one, and a deviation needs two.
    assert [r["score"] for r in rows[4:]] == ["10.00", "", "10.00", ""]


def test_names_and_the_papers_numbers_are_kept_where_seeds_agree_and_never_averaged(tmp_path: Path) -> None:
    write_frame(tmp_path / "t.tsv", with_spread(FRAME, KEY))
    agree, differ = (r for r in read_tsv(tmp_path / "t.tsv") if r["seed"] == "mean")
    assert [agree[c] for c in ("layer", "of", "holds", "paper_score")] == ["2", "36", "yes", "30.00"]
    assert [differ[c] for c in ("layer", "of", "holds", "paper_score")] == ["", "36", "", ""]
    deviations = [r for r in read_tsv(tmp_path / "t.tsv") if r["seed"] == "sd"]
    assert {r[c] for r in deviations for c in ("layer", "of", "holds", "paper_score")} == {""}
    assert {r[c] for r in (agree, differ, *deviations) for c in NEVER} == {""}


def test_a_table_of_one_seed_is_left_as_it_is() -> None:
    one = FRAME[FRAME["seed"] == 2]
    pd.testing.assert_frame_equal(with_spread(one, KEY), one)


def test_rows_that_the_keys_do_not_tell_apart_are_refused() -> None:
    with pytest.raises(ValueError, match="same seed twice"):
        with_spread(FRAME, ("experiment",))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Those of two seeds."""
    return write_results(
        tmp_path_factory.mktemp("results") / "x", World(layers=2, heads=3, lams=("0.1",), seeds=(3, 5))
    )


def test_every_table_but_those_of_single_heads_tells_the_spread(runs: list[Path]) -> None:
    # Claims, whose means have verdicts of their own: test_claims.py and test_scoreboard.py.
    assert {name for name, table in TABLES.items() if not table.keys} == {
        *("measures", "role_drift", "cross_attention", "michel_table1", "claims", "scoreboard"),
    }
    for name in (name for name, table in TABLES.items() if table.keys and TRANSLATION in table.need.tasks):
        frame = table_of_runs(name, [run for run in runs if TABLES[name].need.wants(run_of(run)[1])])
        groups = frame.groupby(list(TABLES[name].keys), dropna=False)["seed"].agg(list)
        assert all(seeds == [3, 5, "mean", "sd"] for seeds in groups), name


def test_a_curve_runs_through_the_means_and_its_bars_are_deviations() -> None:
    points = pd.DataFrame({"target": ["0.1", "0.1", "0.3", "0.3"], "seed": [1, 2, 1, 2], "left": [8, 6, 2, 2],
                           "score": [30.0, 34.0, 20.0, 21.0]})  # fmt: skip
    with styled():
        axes = plt.subplots()[1]
        mean_line(axes, points, "left", "score", color="black", marker="o")
        (x, y) = (np.asarray(values, float).tolist() for values in axes.lines[0].get_data())
        upright = axes.collections[1].get_segments()  # type: ignore[attr-defined]
    assert (x, y) == ([2, 7], [20.5, 32])
    heights = {round(float(s[:, 0].mean())): float(np.ptp(s[:, 1]) / 2) for s in upright}
    assert heights == {7: pytest.approx(sqrt(8)), 2: pytest.approx(sqrt(0.5))}


@pytest.mark.parametrize("name", ["bleu_encoder_heads", "score_scratch", "heads_by_type", "heads_by_layer"])
def test_figures_of_several_seeds_say_so(name: str, runs: list[Path]) -> None:
    figure = draw(name, runs)
    assert "2 seeds" in figure.get_suptitle()
    assert seed_note(FRAME) == ", first of 2 seeds" and not seed_note(FRAME[:2])

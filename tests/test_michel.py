"""Tables and figures of Michel et al. 2019: what stands beside what, and what is drawn."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fake_results import World, write_results
from heads.__main__ import main
from heads.figures import michel
from heads.figures.needs import NEEDS
from heads.figures.style import styled
from heads.files import read_tsv
from heads.tables.michel import layers_table
from heads.tables.needs import NEEDS as TABLE_NEEDS
from heads.tables.reading import load_reference, load_runs

WORLD = World(layers=3, heads=4, lams=("0.01",), seeds=(1, 2))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [r for r in write_results(tmp_path_factory.mktemp("results") / "first", WORLD) if "baseline" in r.parts]


def table(name: str, runs: list[Path], out: Path) -> list[dict[str, str]]:
    assert main(["table", "--name", name, "--runs", *map(str, runs), "--out", str(out)]) == 0
    return read_tsv(out)


def test_the_papers_tables_say_what_its_text_says() -> None:
    heads, layers = load_reference("michel_table1_heads.csv"), load_reference("michel_tables2_5_layers.csv")
    significant = heads[heads["significant"] == 1]
    assert (len(heads), len(significant), int((significant["bleu_change"] > 0).sum())) == (96, 8, 4)
    assert (len(layers), int((layers["significant"] == 0).sum())) == (18, 9), "half of the layers survive (sec. 3.3)"
    worst = layers.loc[layers["bleu_change"].idxmin()]
    assert (worst["attention"], worst["layer"], worst["bleu_change"]) == ("dec_enc", 5, -18.89)


def test_the_table_of_heads_holds_ours_with_their_dev_change_and_then_the_papers(
    runs: list[Path], tmp_path: Path
) -> None:
    rows = table("michel_table1", runs, tmp_path / "t.tsv")
    ours, paper = rows[: 2 * 36], rows[2 * 36 :]
    assert {row["experiment"] for row in paper} == {"paper, WMT EN-FR"} and len(paper) == 96
    place = {"attention": "dec_self", "layer": "2", "head": "1"}
    row = next(r for r in ours if r["seed"] == "2" and place.items() <= r.items())
    for name, suffix in (("ablation.tsv", ""), ("ablation.dev.tsv", "_dev")):
        measured = next(r for r in read_tsv(runs[1] / name) if place.items() <= r.items())
        assert float(row[f"bleu_change{suffix}"]) == pytest.approx(float(measured["bleu_change"]), abs=0.006)
        assert row[f"significant{suffix}"] == str(int(float(measured["p_value"]) < 0.01))


@pytest.mark.parametrize(("layers", "paper"), [(3, [0, 3, 5]), (6, [0, 1, 2, 3, 4, 5]), (2, [0, 5]), (1, [0])])
def test_a_layer_stands_beside_the_papers_layer_of_the_same_depth(layers: int, paper: list[int]) -> None:
    values = dict.fromkeys(("bleu", "bleu_change", "p_value", "bleu_change_oracle", "p_value_oracle"), 0.0)
    found = pd.DataFrame(
        [{"experiment": "e", "seed": 1, "attention": "dec_enc", "layer": n, "heads": 4, "head_chosen": 0,
          "head_oracle": 1, **values} for n in range(layers)]
    )  # fmt: skip
    reference = load_reference("michel_tables2_5_layers.csv")
    result = layers_table({"layers_to_one.tsv": found}, reference)
    assert result["paper_layer"].tolist() == paper
    assert result["paper_bleu_change_oracle"].iloc[0] == 0.24
    assert layers == 1 or result["paper_bleu_change"].iloc[-1] == -18.89


def test_the_curve_says_how_much_of_its_own_start_is_kept(runs: list[Path], tmp_path: Path) -> None:
    rows = table("michel_curve", runs, tmp_path / "t.tsv")
    row = next(r for r in rows if (r["order"], r["attention"], r["masked"], r["seed"]) == ("token", "all", "3", "1"))
    # fake_results: the second order falls by 2 k^2 from 92.
    assert (row["bleu"], row["bleu_change"], row["masked_percent"]) == ("74.00", "-18.00", "75.0")
    assert float(row["kept_percent"]) == pytest.approx(100 * 74 / 92, abs=0.05)
    assert sum(r["seed"] == "mean" for r in rows) == 10 * 5


def test_the_bars_of_the_first_figure_hold_every_head_once(runs: list[Path]) -> None:
    frames = load_runs(NEEDS["michel_fig1"], runs)
    with styled():
        axes = michel.fig1(frames, load_reference("michel_table1_heads.csv"), "first").axes
        heights = [sum(bar.get_height() for bar in each.patches) for each in axes]  # type: ignore[attr-defined]
    assert heights == [12, 12, 12, 96]
    for each, kind in zip(axes, ("enc_self", "dec_self", "dec_enc"), strict=False):
        heads = frames["ablation.tsv"]
        first = heads[(heads["seed"] == 1) & (heads["attention"] == kind)]
        assert each.texts[0].get_text().startswith(f"{int((first['p_value'] < 0.01).sum())} of 12")


def test_the_second_figure_tells_the_correlation_of_what_it_shows(runs: list[Path]) -> None:
    frames = load_runs(NEEDS["michel_fig2"], runs)
    with styled():
        axes = michel.fig2(frames, "first").axes
        drawn = [np.concatenate([np.asarray(line.get_xydata()) for line in each.lines[:3]]) for each in axes]
        titles = [each.get_title(loc="left") for each in axes]
    assert len(drawn[0]) == 36 > len(drawn[1])
    for points, title in zip(drawn, titles, strict=True):
        assert title.endswith(f"r = {np.corrcoef(points.T)[0, 1]:.2f}")


def test_the_second_figure_compares_test_with_another_domain_where_there_is_one(tmp_path: Path) -> None:
    run = write_results(tmp_path / "first", World(layers=2, heads=3, lams=()))[0]
    for label in ("dev", "other domain"):
        with styled():
            axes = michel.fig2(load_runs(NEEDS["michel_fig2"], [run]), "first").axes[0]
        assert axes.get_xlabel() == f"BLEU change without the head, {label}"
        # For the next round; a domain where every head costs the same as on test.
        shutil.copy(run / "ablation.tsv", run / "ablation.other.tsv")
    points = np.concatenate([np.asarray(line.get_xydata()) for line in axes.lines[:3]])
    assert len(points) == 18 and (points[:, 0] == points[:, 1]).all()


def test_the_curves_go_through_the_points_of_the_file(runs: list[Path]) -> None:
    frames = load_runs(NEEDS["michel_fig4"], runs[:1])
    with styled():
        lines = {line.get_label(): line for line in michel.fig4(frames, "first").axes[1].lines}
    for label, fall in (("decoder self-attention", 9), ("all kinds together", 1)):
        assert np.asarray(lines[label].get_xydata()).tolist() == [[k, 92 - fall * k**2] for k in range(5)]


def test_a_moment_without_any_bleu_has_no_share_of_it(runs: list[Path]) -> None:
    frames = load_runs(NEEDS["michel_fig5"], runs)
    with styled():
        shown = michel.fig5(frames, "first").axes[1]
        kept = np.ma.filled(np.asarray(shown.collections[0].get_array(), float).reshape(3, 5), np.nan)
        labels = [label.get_text() for label in shown.get_yticklabels()]
    assert labels == ["0\n(0.0)", "10\n(30.7)", "30, finished\n(92.0)"]
    assert kept[1] == pytest.approx(kept[2], rel=1e-4)
    assert kept[2][4] == pytest.approx(100 * 76 / 92, rel=1e-4)
    assert len(shown.texts) == 10


def test_every_item_of_the_paper_has_a_name_with_its_number() -> None:
    assert {f"michel_fig{number}" for number in range(1, 6)} == set(michel.FIGURES) <= set(NEEDS)
    assert {"michel_table1", "michel_table2", "michel_curve"} <= set(TABLE_NEEDS)

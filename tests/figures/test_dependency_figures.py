"""Figures of dependents and of gates: what is drawn for hand-made numbers, and the density against samples."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from drawn_figures import draw
from fake_results import World, write_results
from heads.__main__ import main
from heads.cli import figure as command
from heads.config.trainings import HardConcrete
from heads.figures.dependencies import BEST, shares_at
from heads.figures.gates import LOG_ALPHAS, density, masses
from heads.figures.style import PAPER_COLOURS
from heads.pruning.gates import probability_one, probability_open, sample
from heads.tables.reading import RUN_COLUMNS, Frames

OTHER_GATES = {"temperature": 0.7, "low": -0.3, "high": 1.2, "log_alpha_init": -0.5}
SHAPES = (HardConcrete(), HardConcrete(**OTHER_GATES))
WAYS = ("dependent-to-head", "head-to-dependent")


def run_of(experiment: str, kind: str = "baseline", lam: str = "", seed: int = 1) -> dict[str, Any]:
    return dict(zip(RUN_COLUMNS, (experiment, kind, "all" if lam else "", "", lam, "", seed), strict=True))


def bars(axes: Axes) -> dict[float, tuple[float, str]]:
    """Height and colour of each visible bar, by its middle."""
    found = [patch for patch in axes.patches if isinstance(patch, Rectangle) and patch.get_height() > 0]
    return {
        round(bar.get_x() + bar.get_width() / 2, 6): (bar.get_height(), to_hex(bar.get_facecolor())) for bar in found
    }


def standing(**places: dict[int, int]) -> Frames:
    """Positions on gold trees by relation, with different ones on second trees and for a second seed."""
    rows = [
        {**run_of("x", seed=seed), "trees": trees, "relation": relation, "position": place, "arcs": arcs * times}
        for seed, trees, times in ((1, "gold", 1), (1, "stanza", 5), (2, "gold", 3))
        for relation, of_relation in places.items()
        for place, arcs in [*of_relation.items(), *([(5, 99)] if times > 1 else [])]
    ]
    return {"positions.tsv": pd.DataFrame(rows, columns=[*RUN_COLUMNS, "trees", "relation", "position", "arcs"])}


def test_dependents_far_off_are_gathered_at_the_ends_but_are_not_the_best_place() -> None:
    stand = pd.DataFrame({"position": [2, -1, -7, -9, -8], "arcs": [3, 5, 4, 4, 4]})
    assert shares_at(stand) == ({-7: 60, -1: 25, 2: 15}, -1)
    assert shares_at(stand.assign(arcs=[3, 5, 4, 4, 9]))[1] == -8


def test_bars_are_the_shares_on_the_first_trees_and_the_best_fixed_offset_is_dark() -> None:
    first, second = draw("relative_positions", standing(nsubj={-2: 1, -1: 3, 4: 1}, obj={1: 1, 12: 3})).axes
    assert [axes.get_title(loc="left") for axes in (first, second)] == ["(a) nsubj", "(b) obj"]
    assert {place: height for place, (height, _) in bars(first).items()} == {-2: 20, -1: 60, 4: 20}
    assert [place for place, (_, colour) in bars(first).items() if colour == BEST] == [-1]
    assert [place for place, (_, colour) in bars(second).items() if colour == BEST] == [7]
    assert [text.get_text() for text in second.texts] == ["75%"]


def test_lines_are_the_papers_best_fixed_offsets_of_that_relation() -> None:
    (axes,) = draw("relative_positions", standing(obj={1: 1})).axes
    lines = {to_hex(line.get_color()): np.ravel(line.get_ydata())[0] for line in axes.lines}
    assert lines == {PAPER_COLOURS["WMT"].lower(): 41, PAPER_COLOURS["OpenSubtitles"].lower(): 46}


def test_without_any_dependent_the_figure_says_so() -> None:
    (axes,) = draw("relative_positions", standing()).axes
    assert [text.get_text() for text in axes.texts] == ["no dependent of these relations"]


def measured(experiment: str, accuracies: dict[str, Sequence[float]], baseline: float, seed: int = 1) -> pd.DataFrame:
    """Rows of `roles.tsv`: the accuracy of heads 0, 1, ... of one layer at measures such as `obj head-to-dependent`."""
    rows = [
        {**run_of(experiment, seed=seed), "trees": "gold", "layer": 0, "head": head, "role": "syntactic", "name": name,
         "accuracy": accuracy, "low": accuracy - 0.02, "high": accuracy + 0.05, "baseline": baseline,
         "excess_low": 0.0, "excess_high": 0.0, "cases": 50, "reaches": 0, "holds": 0}
        for name, heads in accuracies.items() for head, accuracy in enumerate(heads)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def two_experiments() -> Frames:
    forth, back = (f"obj {way}" for way in WAYS)
    roles = [
        measured("b", {forth: [0.2, 0.6, 0.1], back: [0.3, 0.1, 0.2]}, 0.5),
        measured("a", {forth: [0.7, 0.4, 0.1], back: [0.1, 0.1, 0.9]}, 0.25),
        measured("a", {forth: [1.0, 1.0, 1.0], back: [1.0, 1.0, 1.0]}, 0.9, seed=2),
    ]
    facts = {"trees": "gold", "sentences": 9, "measured": 9, "tree_words": 90, "aligned_words": 90}
    alignment = [{**run_of(experiment, seed=seed), **facts} for experiment, seed in (("b", 1), ("a", 1), ("a", 2))]
    return {"roles.tsv": pd.concat(roles, ignore_index=True), "coverage.tsv": pd.DataFrame(alignment)}


def test_the_best_heads_of_all_experiments_stand_beside_the_papers_by_direction() -> None:
    """Experiments in the given order, then WMT and OpenSubtitles; heads of the first seed."""
    wanted = {"a": [60, 70, 73, 84], "b": [30, 90, 78, 61]}
    figure = draw("dependency_scores", two_experiments(), "b, a")
    for axes, (letter, heights) in zip(figure.axes, wanted.items(), strict=True):
        assert axes.get_title(loc="left").startswith(f"({letter}) from the {'dependent' * (letter == 'a')}")
        drawn = bars(axes)
        assert [drawn[place][0] for place in sorted(drawn)] == pytest.approx(heights)
        colours = [drawn[place][1] for place in sorted(drawn)][2:]
        assert colours == [colour.lower() for colour in PAPER_COLOURS.values()]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["b", "a", "paper, WMT", "paper, OpenSubtitles", "best fixed offset"]
    assert [text.get_text() for text in figure.axes[1].get_xticklabels()] == ["obj"]


def test_a_bar_carries_its_own_best_fixed_offset_and_the_interval_of_its_head() -> None:
    axes = draw("dependency_scores", two_experiments(), "b, a").axes[0]
    # Each corpus has one collection of error bars, then one of baselines.
    segments = [np.concatenate(list(lines.get_segments())) for lines in axes.collections]  # type: ignore[attr-defined]
    whiskers, baselines = segments[::2], segments[1::2]
    assert [sorted(ends[:, 1]) for ends in whiskers[:2]] == [pytest.approx([58, 65]), pytest.approx([68, 75])]
    assert [ends[:, 1].tolist() for ends in baselines] == [[50, 50], [25, 25], [41, 41], [46, 46]]
    places = sorted(bars(axes))
    assert [float(ends[:, 0].mean()) for ends in baselines] == pytest.approx(places)


def stratified(log_alpha: float, shape: HardConcrete) -> NDArray[np.float64]:
    """Gates as training draws them, for evenly spaced noise: a sample without randomness."""
    noise = (torch.arange(200_000, dtype=torch.float64) + 0.5) / 200_000
    return sample(torch.tensor(log_alpha, dtype=torch.float64), noise, shape).numpy()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("log_alpha", [-2.5, 0.1, 1.7])
def test_masses_and_density_are_those_of_the_gates_that_training_draws(shape: HardConcrete, log_alpha: float) -> None:
    gates, tensor = stratified(log_alpha, shape), torch.tensor(log_alpha, dtype=torch.float64)
    zero, one = masses(np.array(log_alpha), shape)
    assert [zero, one] == pytest.approx([(gates == 0).mean(), (gates == 1).mean()], abs=1e-5)
    assert 1 - zero == pytest.approx(float(probability_open(tensor, shape)))
    assert one == pytest.approx(float(probability_one(tensor, shape)))
    edges = np.linspace(0, 1, 11)
    for low, high in pairwise(edges):
        points = low + (np.arange(200) + 0.5) / 200 * (high - low)
        share = ((gates > low) & (gates < high)).mean()
        assert density(points, log_alpha, shape).mean() * (high - low) == pytest.approx(share, abs=2e-4)


def trained(*gates: tuple[str, int, float]) -> Frames:
    """Gates by lambda, seed and log alpha."""
    rows = [{**run_of("x", "gates", lam, seed), "log_alpha": value} for lam, seed, value in gates]
    return {"heads.tsv": pd.DataFrame(rows, columns=[*RUN_COLUMNS, "log_alpha"])}


def test_the_figure_of_gates_is_drawn_from_the_settings() -> None:
    shape = SHAPES[1]
    zero, middle, one, ended, _ = draw("hard_concrete", trained(("0.1", 1, -4.0)), shape=shape).axes
    heights = [[height for _, (height, _) in sorted(bars(axes).items())] for axes in (zero, one)]
    lines = [np.asarray(line.get_xydata(), float) for line in middle.lines]
    starts = [np.ravel(line.get_xdata())[0] for line in ended.lines]
    for number, log_alpha in enumerate(LOG_ALPHAS):
        gates = stratified(log_alpha, shape)
        assert heights[0][number] == pytest.approx((gates == 0).mean(), abs=1e-5)
        assert heights[1][number] == pytest.approx((gates == 1).mean(), abs=1e-5)
        half = lines[number][lines[number][:, 0] < 0.5]
        assert half[:, 1].mean() / 2 == pytest.approx(((gates > 0) & (gates < 0.5)).mean(), abs=1e-4)
    assert starts == [-0.5]


def test_gates_without_a_penalty_and_of_later_seeds_are_not_among_those_that_ended() -> None:
    gates = trained(("0", 1, 9.0), ("0.1", 1, -6.0), ("0.5", 1, 4.0), ("0.5", 1, 4.0), ("0.1", 2, -2.0))
    figure = draw("hard_concrete", gates, shape=SHAPES[0])
    ended = figure.axes[3]
    found = {place: height for place, (height, _) in bars(ended).items()}
    assert "first of 2 seeds" in figure.get_suptitle()
    assert ended.get_title(loc="left") == "(b) where 3 trained gates ended"
    assert [height for _, height in sorted(found.items())] == [1, 2]
    assert sorted(found) == pytest.approx([-6, 4], abs=0.2)


def test_the_three_probabilities_by_log_alpha_fill_the_panel() -> None:
    panel = draw("hard_concrete", trained(("0.1", 1, -6.0)), shape=SHAPES[0]).axes[4]
    areas = [area.get_paths()[0].vertices for area in panel.collections]
    for area, (low, high) in zip(areas, ((0.0, None), (None, None), (None, 1.0)), strict=True):
        assert low is None or np.asarray(area)[:, 1].min() == low
        assert high is None or np.asarray(area)[:, 1].max() == pytest.approx(high)
    at = {log_alpha: masses(np.array(log_alpha), SHAPES[0]) for log_alpha in (-7.0, 4.0)}
    assert at[-7.0][0] > 0.99 and at[4.0][1] > 0.9
    vertices = np.asarray(areas[0])
    assert vertices[vertices[:, 0] < -6.9, 1].max() > 0.99 and vertices[vertices[:, 0] > 3.9, 1].max() < 0.05


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Runs of two experiments."""
    world, folder = World(layers=2, heads=2, lams=("0.1",), scratch=False), tmp_path_factory.mktemp("small")
    return {name: write_results(folder / name, world) for name in ("b", "a")}


def drawn_by_command(name: str, runs: list[Path], folder: Path, *flags: str) -> int:
    out = ["--out-pdf", str(folder / "x.pdf"), "--out-png", str(folder / "x.png")]
    return main(["figure", "--name", name, "--runs", *map(str, runs), *out, *flags])


def test_several_experiments_are_drawn_in_one_picture_only_where_the_figure_is_made_for_that(
    small: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = small["b"] + small["a"]
    assert drawn_by_command("relative_positions", runs, tmp_path) == 1
    assert "names the experiments b and a: draw one experiment at a time" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert drawn_by_command("dependency_scores", runs, tmp_path) == 0
    assert (tmp_path / "x.png").exists()


def test_only_the_figure_of_gates_is_told_settings_and_it_needs_them(
    small: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["--gates", json.dumps({"a": OTHER_GATES})]
    for name, given in (("hard_concrete", []), ("relative_positions", settings)):
        assert drawn_by_command(name, small["a"], tmp_path, *given) == 1
        assert "--gates is required for hard_concrete and not allowed for any other figure" in capsys.readouterr().err
    assert not (tmp_path / "x.png").exists()


def test_the_command_draws_gates_from_the_settings_that_it_is_told(
    small: dict[str, list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = [draw("hard_concrete", small["a"], shape=HardConcrete(**OTHER_GATES))]
    monkeypatch.setattr(command, "save", lambda figure, *_: figures.append(figure))
    assert drawn_by_command("hard_concrete", small["a"], tmp_path, "--gates", json.dumps({"a": OTHER_GATES})) == 0
    expected, found = ([line.get_xydata() for axes in figure.axes for line in axes.lines] for figure in figures)
    np.testing.assert_equal(found, expected)
    assert [np.ravel(line.get_xdata())[0] for line in figures[1].axes[3].lines] == [-0.5]

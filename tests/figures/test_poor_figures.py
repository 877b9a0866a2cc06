"""Figures of poor data (one pruned model without heads, none from scratch, no trees): how much is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh

from fake_results import World, write_results
from heads.base.files import read_json
from heads.cli.figure import FIGURES
from heads.figures.needs import NEEDS
from heads.figures.style import styled
from heads.tables.reading import load_reference, load_runs

HEADS = 2 * 3
"""Heads of each kind of attention."""
STEPS = 5
"""Steps of every walk that masks heads."""
PAPER_MODELS = 14

DRAWN: dict[str, list[int]] = {
    "head_functions": [HEADS] * 3,
    # For each kind, three shares by the paper's rule, one by the other, and confidence.
    "relevance_all": [HEADS] * 5 * 3,
    # Measures against each other, without the diagonal; then, by kind and reading of relevance, heads and the most
    # relevant of the first layer.
    "measures": [13 * 12, *[HEADS + 1] * 3 * 4],
    "attention_maps": [9 * 9] * 3,
    "bleu_encoder_heads": [1, 1],
    "heads_by_type": [3 * 2, 3 * PAPER_MODELS],
    "heads_by_layer": [2 * 2, 3 * PAPER_MODELS] * 2,
    "score_scratch": [1, 0],
    "michel_fig1": [HEADS, HEADS, HEADS, 96],
    "michel_fig3": [4 * STEPS, 5 * STEPS],
    "michel_fig4": [4 * STEPS] * 2,
    # One of three checkpoints has no BLEU to lose.
    "michel_fig5": [3 * STEPS, 2 * STEPS],
}
"""For each panel of each figure: cells, heights of bars or points of named lines (without those in LEVELS)."""

LEVELS = ("unpruned model", "control, λ = 0", "paper, WMT", "paper, OpenSubtitles")


@pytest.fixture(scope="module")
def poor(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    world = World(layers=2, heads=3, lams=("99",), scratch=False, trees=False)
    return write_results(tmp_path_factory.mktemp("results") / "poor", world)


def drawn(name: str, poor: list[Path]) -> list[Axes]:
    """The panels of a figure, without its colour bars."""
    reference = [load_reference(file) for file in NEEDS[name].reference]
    with styled():
        figure = FIGURES[name](load_runs(NEEDS[name], poor), *reference, "poor")
        return [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]


def amount(axes: Axes) -> int:
    """How much a panel shows: its cells, the points of its named lines and the heights of its bars."""
    meshes: list[Any] = [np.ma.asarray(mesh.get_array()) for mesh in axes.collections if isinstance(mesh, QuadMesh)]
    cells = sum(int(mesh.count()) for mesh in meshes)
    cells += sum(int(np.prod(np.asarray(image.get_array()).shape[:2])) for image in axes.images)
    named = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    points = sum(len(np.asarray(line.get_xdata())) for line in named if line.get_label() not in LEVELS)
    bars = sum(patch.get_height() for patch in axes.patches)  # type: ignore[attr-defined]
    return cells + points + round(bars)


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_shows_all_that_there_is_of_poor_data(name: str, poor: list[Path]) -> None:
    assert [amount(axes) for axes in drawn(name, poor)] == DRAWN[name]


def test_a_single_pruned_model_stands_at_its_own_heads_and_bleu(poor: list[Path]) -> None:
    for figure, scope in (("bleu_encoder_heads", "enc_self"), ("score_scratch", "all")):
        (run,) = (path for path in poor if path.parts[-4:-1] == ("pruned", scope, "lam-99"))
        left = drawn(figure, poor)[0]
        (point,) = (line for line in left.lines if line.get_label() in ("this experiment", "pruned"))
        assert np.asarray(point.get_xydata()).tolist() == [[0, read_json(run / "bleu.json")["bleu"]]]


def test_bars_count_the_heads_of_the_unpruned_model_alone_and_a_panel_without_models_says_so(poor: list[Path]) -> None:
    encoder, paper, everywhere, scratch = drawn("functions_retained", poor)
    assert [amount(axes) for axes in (encoder, everywhere)] == [HEADS, HEADS]
    assert amount(paper) > HEADS
    assert [text.get_text() for text in scratch.texts] == ["no such models"]
    assert not scratch.patches


def test_a_correlation_of_too_few_heads_is_not_told(poor: list[Path]) -> None:
    _, near = drawn("michel_fig2", poor)
    for line in near.lines[:3]:
        label, points = str(line.get_label()), len(np.asarray(line.get_xdata()))
        assert label.endswith("r = –") == (points < 3), label

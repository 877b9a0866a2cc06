"""Figures of a model whose decoder is shallower than its encoder and has no self-attention, like Firefox's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

from fake_results import write_results_without
from heads.base.names import ATTENTION_LABELS, TRANSLATION
from heads.cli.figure import FIGURES
from heads.config.trainings import HardConcrete
from heads.figures.needs import FROM_SETTINGS, NEEDS
from heads.figures.style import styled
from heads.tables.reading import load_reference, load_runs

LACKED = "dec_self"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_results_without(tmp_path_factory.mktemp("absent") / "less", (LACKED,))


@pytest.mark.parametrize("name", [name for name in FIGURES if TRANSLATION in NEEDS[name].tasks])
def test_each_figure_is_drawn_and_shows_no_empty_panel(name: str, runs: list[Path]) -> None:
    others: list[Any] = [load_reference(file) for file in NEEDS[name].reference]
    others += [HardConcrete()] if name in FROM_SETTINGS else []
    with styled():
        figure = FIGURES[name](load_runs(NEEDS[name], runs), *others, "less")
        seen = [axes for axes in figure.axes if axes.get_visible() and (axes.axison or axes.texts)]
        assert seen and all(axes.has_data() or axes.texts for axes in seen)
        plt.close(figure)


def test_relevance_shows_all_layers_of_each_kind_that_there_is(runs: list[Path]) -> None:
    """Of two layers, only the first has cross-attention."""
    frames = load_runs(NEEDS["relevance_all"], runs)
    frames = {name: rows[(rows["attention"] != "dec_enc") | (rows["layer"] == 0)] for name, rows in frames.items()}
    with styled():
        figure = FIGURES["relevance_all"](frames, "less")
        titles = [title for axes in figure.axes if (title := axes.get_title(loc="left") or axes.get_title())]
        assert titles == [f"(a) {ATTENTION_LABELS['enc_self']}", f"(b) {ATTENTION_LABELS['dec_enc']}"]
        grids = [axes for axes in figure.axes if axes.collections and round(axes.get_xlim()[1]) == 3]
        depths = [round(axes.get_ylim()[1]) for axes in grids]
    assert depths and depths == [2, 1] * (len(depths) // 2)


def test_a_kind_that_is_not_there_has_no_line_at_zero(runs: list[Path]) -> None:
    with styled():
        ours, paper = FIGURES["heads_by_type"](
            load_runs(NEEDS["heads_by_type"], runs), load_reference("voita_figure9_types.csv"), "less"
        ).axes[:2]
        drawn, theirs = ({str(line.get_label()) for line in axes.lines} for axes in (ours, paper))
    assert (
        ATTENTION_LABELS[LACKED] not in drawn and {ATTENTION_LABELS["enc_self"], ATTENTION_LABELS["dec_enc"]} <= drawn
    )
    assert ATTENTION_LABELS[LACKED] in theirs

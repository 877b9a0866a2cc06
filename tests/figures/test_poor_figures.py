"""Figures of poor data, of models without a kind of attention, and of classifiers: they show all there is."""

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from numpy.typing import NDArray

from drawn_figures import OF_TRANSLATORS, draw, lines_of, panels_of
from fake_labels import MAJORITY, write_told
from fake_results import TREE_FILES, World, take_trees, write_results, write_results_without
from heads.base.files import read_json, read_tsv
from heads.base.names import ATTENTION_LABELS
from heads.figures.style import styled
from heads.tables.catalogue import FIGURES
from heads.tables.reading import load_runs
from slow_ones import slow_but

HEADS = 2 * 3
"""Heads of each kind of attention."""
STEPS = 5
"""Steps of every walk that masks heads."""
PAPER_MODELS = 14
LACKED = "dec_self"

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


@pytest.fixture(scope="module")
def less(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_results_without(tmp_path_factory.mktemp("absent") / "less", (LACKED,))


def drawn(name: str, runs: list[Path]) -> list[Axes]:
    """The panels of a figure, without its colour bars."""
    return [axes for axes in draw(name, runs).axes if axes.get_label() != "<colorbar>"]


def amount(axes: Axes) -> int:
    """How much a panel shows: its cells, the points of its named lines and the heights of its bars."""
    meshes: list[Any] = [np.ma.asarray(mesh.get_array()) for mesh in axes.collections if isinstance(mesh, QuadMesh)]
    cells = sum(int(mesh.count()) for mesh in meshes)
    cells += sum(int(np.prod(np.asarray(image.get_array()).shape[:2])) for image in axes.images)
    named = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    points = sum(len(np.asarray(line.get_xdata())) for line in named if line.get_label() not in LEVELS)
    bars = sum(patch.get_height() for patch in axes.patches)  # type: ignore[attr-defined]
    return cells + points + round(bars)


def pixels(figure: Figure) -> NDArray[np.int_]:
    """The pixels of a figure."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba()).astype(int)


@pytest.mark.parametrize("name", slow_but(OF_TRANSLATORS[:-2:4], OF_TRANSLATORS))
def test_poor_data_still_gives_a_figure_in_which_every_panel_shows_something_or_says_why_not(
    name: str, poor: list[Path]
) -> None:
    with styled():
        figure = draw(name, poor)
        whole = pixels(figure)
        for axes in panels_of(figure):
            for artist in [*axes.lines, *axes.patches, *axes.collections, *axes.images, *axes.texts]:
                artist.set_visible(False)
        bare = pixels(figure)
    # Not only the frame and its words, which are there without any data.
    assert whole.shape != bare.shape or (np.abs(whole - bare) > 60).any(-1).mean() > 0.001


@pytest.fixture(scope="module")
def untreed(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    runs = write_results(
        tmp_path_factory.mktemp("results") / "untreed", World(layers=2, heads=3, lams=("99",), scratch=False)
    )
    take_trees(runs)
    return runs


OF_TREES = [
    name
    for name in OF_TRANSLATORS
    if not FIGURES[name].need.syntactic and {*TREE_FILES} & {*chain(*FIGURES[name].need.files.values())}
]
"""Figures that can do without trees and read a file that says less then; others are drawn from the same as ever."""


@pytest.mark.parametrize("name", slow_but(["functions_retained"], OF_TREES))
def test_without_trees_each_figure_is_drawn_and_says_that_no_head_was_measured_as_syntactic(
    name: str, untreed: list[Path]
) -> None:
    figure = draw(name, untreed)
    texts = [text.get_text() for axes in panels_of(figure) for text in axes.texts]
    assert name != "dynamics" or "not measured" in texts
    of_functions = ("functions_retained", "head_functions")
    assert figure.get_suptitle().endswith(", none measured as syntactic") == (name in of_functions)


@pytest.mark.parametrize("name", slow_but([*DRAWN][::3], DRAWN))
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


@pytest.mark.parametrize("name", slow_but(OF_TRANSLATORS[1::4], OF_TRANSLATORS))
def test_without_a_kind_of_attention_each_figure_is_drawn_and_shows_no_empty_panel(name: str, less: list[Path]) -> None:
    panels_of(draw(name, less))


def test_relevance_shows_all_layers_of_each_kind_that_there_is(less: list[Path]) -> None:
    """Of two layers, only the first has cross-attention."""
    frames = load_runs(FIGURES["relevance_all"].need, less)
    frames = {name: rows[(rows["attention"] != "dec_enc") | (rows["layer"] == 0)] for name, rows in frames.items()}
    figure = draw("relevance_all", frames)
    titles = [title for axes in figure.axes if (title := axes.get_title(loc="left") or axes.get_title())]
    assert titles == [f"(a) {ATTENTION_LABELS['enc_self']}", f"(b) {ATTENTION_LABELS['dec_enc']}"]
    grids = [axes for axes in figure.axes if axes.collections and round(axes.get_xlim()[1]) == 3]
    depths = [round(axes.get_ylim()[1]) for axes in grids]
    assert depths and depths == [2, 1] * (len(depths) // 2)


def test_a_kind_that_is_not_there_has_no_line_at_zero(less: list[Path]) -> None:
    ours, paper = ({str(line.get_label()) for line in axes.lines} for axes in drawn("heads_by_type", less))
    present = {ATTENTION_LABELS["enc_self"], ATTENTION_LABELS["dec_enc"]}
    assert ATTENTION_LABELS[LACKED] not in ours and present <= ours
    assert ATTENTION_LABELS[LACKED] in paper


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_told(tmp_path_factory.mktemp("results") / "told", World(layers=3, heads=4, lams=("0.03", "0.1")))


def test_a_classifier_has_one_kind_of_heads_and_the_paper_no_numbers_of_its_single_ones(told: list[Path]) -> None:
    (axes,) = drawn("michel_fig1", told)
    assert sum(patch.get_height() for patch in axes.patches) == 12  # type: ignore[attr-defined]
    assert axes.get_figure(root=True).get_supxlabel().startswith("accuracy (%) change")  # type: ignore[union-attr]


def test_layers_cut_to_one_head_stand_by_their_depth_beside_those_of_the_papers_model_of_the_same_metric(
    told: list[Path], tmp_path: Path
) -> None:
    written = write_results(tmp_path / "written", World(layers=2, heads=3, lams=("0.1",)))
    of = {"told": (told, "paper, BERT-base on MNLI", -0.15, 1), "written": (written, "paper, WMT on EN-FR", -0.67, 3)}
    for runs, paper, last, panels in of.values():
        axes = drawn("michel_layers", runs)
        found = lines_of(axes[0])
        assert (len(axes), "accuracy (%)" in axes[0].get_ylabel()) == (panels, panels == 1)
        rows = [row for row in read_tsv(runs[0] / "layers_to_one.tsv") if row["attention"] == "enc_self"]
        metric = "accuracy" if panels == 1 else "bleu"
        assert found["ours, head chosen on dev"] == [
            [int(row["layer"]) / (len(rows) - 1), float(row[f"{metric}_change"])] for row in rows
        ]
        assert found[paper][-1] == [1, last]


def test_pruned_classifiers_stand_beside_the_same_heads_from_scratch_and_above_the_likeliest_label(
    told: list[Path],
) -> None:
    scores, gains = drawn("score_scratch", told)
    accuracy = {run.parts[-4]: read_json(run / "accuracy.json")["accuracy"] for run in told if "lam-0.1" in run.parts
                and (run / "accuracy.json").exists()}  # fmt: skip
    found = lines_of(scores)
    assert scores.get_ylabel() == "accuracy (%), test set" and gains.get_title(loc="left") == "(b) gain over scratch"
    assert accuracy["pruned"] in [y for _, y in found["pruned"]]
    assert accuracy["scratch"] in [y for _, y in found["same heads, from scratch"]]
    assert {y for _, y in found["likeliest label"]} == {MAJORITY}
    assert [label for label in lines_of(gains) if label.startswith("paper")] == []


def test_what_the_paper_masks_unnoticed_is_that_of_bert_and_the_legend_leaves_the_curves_free(told: list[Path]) -> None:
    axes = drawn("michel_fig3", told)[0]
    assert axes.texts[0].get_position()[0] == 41 and axes.get_ylabel() == "accuracy (%), test set"

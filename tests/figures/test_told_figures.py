"""Figures of classifiers: labelled with accuracy, of the encoder alone, beside the paper's numbers for BERT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from drawn_figures import draw
from fake_labels import MAJORITY, write_told
from fake_results import World, write_results
from heads.base.files import read_json, read_tsv
from heads.figures.style import styled


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_told(tmp_path_factory.mktemp("results") / "told", World(layers=3, heads=4, lams=("0.03", "0.1")))


def drawn(name: str, runs: list[Path]) -> list[Axes]:
    with styled():
        return draw(name, runs).axes


def lines(axes: Axes) -> dict[str, list[list[float]]]:
    """The points of each line by its label."""
    return {str(line.get_label()): np.asarray(line.get_xydata(), float).tolist() for line in axes.lines}


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
        found = lines(axes[0])
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
    found = lines(scores)
    assert scores.get_ylabel() == "accuracy (%), test set" and gains.get_title(loc="left") == "(b) gain over scratch"
    assert accuracy["pruned"] in [y for _, y in found["pruned"]]
    assert accuracy["scratch"] in [y for _, y in found["same heads, from scratch"]]
    assert {y for _, y in found["likeliest label"]} == {MAJORITY}
    assert [label for label in lines(gains) if label.startswith("paper")] == []


def test_what_the_paper_masks_unnoticed_is_that_of_bert_and_the_legend_leaves_the_curves_free(told: list[Path]) -> None:
    axes = drawn("michel_fig3", told)[0]
    assert axes.texts[0].get_position()[0] == 41 and axes.get_ylabel() == "accuracy (%), test set"

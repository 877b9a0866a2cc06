"""Tables with classifiers in them: their metric, what rows are compared with, the paper's layers beside ours."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fake_labels import write_told
from fake_results import World, write_results
from heads.base.files import write_json, write_lines, write_tsv
from heads.base.names import ACCURACY, BLEU
from heads.base.runs import run_of
from heads.model.shape import ModelShape, full_heads
from heads.tables.claims_michel import MICHEL_CLAIMS, share
from heads.tables.gathering import gathered
from heads.tables.michel import PAPER
from heads.tables.needs import NEEDS
from heads.tables.reading import COLUMNS

SCORES = {
    "baseline/seed-1": 81.0,
    "pruned/all/lam-0/seed-1": 82.5,
    "pruned/all/lam-0.1/seed-1": 79.0,
    "selected/all/lam-0.1/seed-1": 80.5,
    "scratch/all/lam-0.1/seed-1": 70.0,
    "pruned/all/keep-2/seed-1": 77.0,
    "gates/all/lam-0/seed-1": 0.0,
    "gates/all/lam-0.1/seed-1": 0.0,
    "gates/all/keep-2/seed-1": 0.0,
}
LEFT = {"pruned/all/lam-0.1/seed-1": ((0,), (1, 2)), "pruned/all/keep-2/seed-1": ((0,), (1,))}
HEADS = [("enc_self", layer, head) for layer in range(2) for head in range(3)]


def shape(live: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
    heads = {**full_heads(layers=2, heads=3, kinds=("enc_self",)), "enc_self": live}
    sizes: dict[str, Any] = {"width": 6, "head_width": 2, "feedforward": 7, "source_subwords": 11, "target_subwords": 3}
    return ModelShape(**sizes, dropout=0.0, pre_norm=True, original_heads=3, live_heads=heads, labels=3).as_dict()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders of all runs of a classification experiment, with invented scores."""
    root = tmp_path_factory.mktemp("tables") / "results/told"
    for number, (run, score) in enumerate(SCORES.items()):
        folder = root / run
        live = LEFT.get(run.replace("selected", "pruned").replace("scratch", "pruned"), ((0, 1, 2),) * 2)
        facts = {"shape": shape(live), "updates": 10, "total_updates": 10 + number, "dev_loss": 0.5}
        write_json(folder / "model.json", facts)
        curve = [json.dumps({"update": update, "dev_loss": 1.0 / update}) for update in (5, 9, 10)]
        write_lines(folder / "train.jsonl", curve)
        if run.startswith("gates"):
            columns = ("attention", "layer", "head", "log_alpha", "p_open", "open", "strictly_between")
            rows = [dict(zip(columns, (*head, 0.1, 0.6, 1, int(head[2] == 0)), strict=True)) for head in HEADS]
            write_tsv(folder / "heads.tsv", rows, columns)
        else:
            facts = {"accuracy": score, "matthews": score / 100, "majority": 40.0, "examples": 50, "split": "test"}
            write_json(folder / "accuracy.json", facts)
    baseline = root / "baseline/seed-1"
    alone = ("attention", "layer", "head", "accuracy", "accuracy_change", "p_value",
             "matthews", "matthews_change", "matthews_p_value")  # fmt: skip
    for name, change in (("ablation", -1.5), ("ablation.dev", 0.5)):
        cells = [
            (*head, 81 + change, change, 0.005 * (1 + head[2]), 0.7, change / 100, 0.006 * (1 + head[1]))
            for head in HEADS
        ]
        write_tsv(baseline / f"{name}.tsv", [dict(zip(alone, row, strict=True)) for row in cells], alone)
    layers = ("attention", "layer", "heads", "head_chosen", "accuracy", "accuracy_change", "p_value", "head_oracle",
              "accuracy_oracle", "accuracy_change_oracle", "p_value_oracle")  # fmt: skip
    cut = [("enc_self", layer, 3, 1, 80.0, -1.0, 0.3, 2, 81.5, 0.5, 0.4) for layer in (0, 1)]
    write_tsv(baseline / "layers_to_one.tsv", [dict(zip(layers, row, strict=True)) for row in cut], layers)
    return [root / run for run in SCORES]


def test_each_pruned_model_stands_beside_what_it_is_to_be_compared_with(runs: list[Path]) -> None:
    table = gathered("pruning", runs).set_index(["kind", "lam", "keep"])
    assert len(table) == 4
    row = table.loc["pruned", "0.1", ""]
    assert (row["total"], row["of"], row["gates_strictly_between"]) == (3, 6, 2)
    assert (row["metric"], row["score"], row["matthews"], row["majority"]) == (ACCURACY, 79.0, 0.79, 40.0)
    others = {"trained_on": 80.5, "scratch": 70.0, "control": 82.5, "baseline": 81.0}
    assert {name: row[f"score_{name}"] for name in others} == others
    assert [row[f"score_minus_{name}"] for name in others] == pytest.approx([79.0 - score for score in others.values()])
    assert table.loc["pruned", "", "2"]["score_minus_baseline"] == pytest.approx(-4.0)
    assert table.loc["baseline"].iloc[0]["score_minus_baseline"] == 0
    assert pd.isna(table.loc["pruned", "", "2"]["score_scratch"])
    assert table["paper_tag"].isna().all() and table["sentences"].tolist() == [50] * 4


def test_single_heads_have_accuracy_and_no_rows_of_a_paper_without_numbers(runs: list[Path]) -> None:
    table = gathered("michel_table1", runs)
    assert len(table) == 6 and {*table["metric"]} == {ACCURACY}
    assert set(table["score_change"]) == {-1.5} and set(table["score_change_dev"]) == {0.5}
    assert table["significant"].tolist() == [1, 0, 0] * 2
    assert set(table["matthews_change"]) == {-0.015} and set(table["matthews"]) == {0.7}
    assert table["matthews_significant"].tolist() == [1] * 3 + [0] * 3


def test_correlations_are_of_the_ranks_of_a_classifiers_own_measures(tmp_path: Path) -> None:
    runs = write_told(tmp_path / "told", World(layers=2, heads=4, lams=("0.1",)))
    found, heads = gathered("correlations", runs), gathered("measures", runs)
    assert {*found["attention"]} == {"enc_self"}
    told = found.set_index(["attention", "measure_a", "measure_b"])
    for pair in combinations(("lrp_plain_signed_by_step", "confidence", "score_lost"), 2):
        ranks = heads[[*pair]].rank().to_numpy()
        expected = np.corrcoef(ranks.T)[0, 1]
        assert told.loc[("enc_self", *pair), "rho"] == pytest.approx(expected, abs=1e-9) and abs(expected) > 0.01
    assert {*found["heads"]} <= {8}


def test_layers_stand_beside_berts_at_the_same_depth(runs: list[Path]) -> None:
    table = gathered("michel_table2", runs)
    assert table["paper_layer"].tolist() == [0, 11]
    assert table["paper_score_change"].tolist() == [-0.01, -0.15]
    assert table["paper_score_change_oracle"].tolist() == [-0.01, -0.12]
    assert table["score_change_oracle"].tolist() == [0.5, 0.5]


def test_translators_and_classifiers_share_tables_each_with_its_metric_and_the_numbers_of_the_paper_about_it(
    runs: list[Path], tmp_path: Path
) -> None:
    both = [*runs, *write_results(tmp_path / "written", World(layers=3, heads=2, lams=("0.1",)))]
    metrics = {"told": {ACCURACY}, "written": {BLEU}}
    for name in ("pruning", "michel_table1", "michel_table2"):
        table = gathered(name, [run for run in both if NEEDS[name].wants(run_of(run)[1])])
        ours = table[~table["experiment"].str.startswith(PAPER)]
        assert {one: {*rows["metric"]} for one, rows in ours.groupby("experiment")} == metrics
        alone = gathered(name, [run for run in runs if NEEDS[name].wants(run_of(run)[1])])
        told = ours[ours["experiment"] == "told"].reset_index(drop=True)
        pd.testing.assert_frame_equal(told.astype(object), alone.astype(object))
    layers = gathered("michel_table2", [run for run in both if run.parent.name == "baseline"])
    assert layers[layers["attention"] == "enc_self"]["paper_layer"].tolist() == [0, 11, 0, 3, 5]


@pytest.mark.parametrize(("change", "noticed"), [(-0.9, 0), (-1.1, 6)])
def test_a_point_of_accuracy_is_noticed_though_too_few_examples_make_it_sure(change: float, noticed: int) -> None:
    """For translations a quarter of a point of BLEU is."""
    alone = {"attention": "enc_self", "metric": ACCURACY, "score_change": [change] * 6, "p_value": 0.2}
    found = MICHEL_CLAIMS["heads_that_matter"]({"ablation.tsv": pd.DataFrame(alone)})
    assert (found.ours, found.low, found.high) == (0, 0, share(noticed, 6).high)
    gains = pd.DataFrame({**alone, "score_change": [-change] * 6})
    assert MICHEL_CLAIMS["heads_that_matter"]({"ablation.tsv": gains}).high == share(0, 6).high
    for chosen in ("", "_oracle"):
        cut = pd.DataFrame({"metric": ACCURACY, f"score_change{chosen}": [change] * 6, f"p_value{chosen}": 0.2})
        found = MICHEL_CLAIMS[f"layers_with_one_head{chosen}"]({"layers_to_one.tsv": cut})
        assert (found.ours, found.low, found.high) == (1, 1 - noticed / 6, 1)


CLAIM_WALK = [(0, 0.0, 81.0), (3, 0.5, 80.4), (6, 1.0, 78.4)]
"""Masked heads, their share, accuracy by importance: 1 point is lost at 0.5 + 0.5 * 0.4 / 2."""


def test_claims_about_classifiers_have_verdicts_of_their_own(runs: list[Path]) -> None:
    baseline = runs[0]
    columns = ("order", "attention", "masked", "of", "share", "accuracy", "accuracy_change_low", "accuracy_change_high",
               "accuracy_kept_low", "accuracy_kept_high", "accuracy_behind", "accuracy_behind_low",
               "accuracy_behind_high")  # fmt: skip
    rows = []
    for order, worse in (("example", 0.0), ("ablation", 2.0)):
        for masked, part, accuracy in CLAIM_WALK:
            change, behind = accuracy - worse - 81, (worse, worse - 0.5, worse + 0.5)
            cells = (order, "all", masked, 6, part, accuracy - worse, change, change, 1, 1, *behind)
            rows.append(dict(zip(columns, cells, strict=True)))
    write_tsv(baseline / "masking_curve.tsv", rows, columns)
    speed = ("run", "batch_sentences", "repeats", "examples_per_second", "examples_per_second_sd", "ratio", "ratio_low",
             "ratio_high", "sentences", "subwords_per_example", "heads", "of", "parameters", "disk_mb",
             "peak_memory_mb", "device")  # fmt: skip
    rows = [
        dict(zip(speed, (run, size, 2, 50, 1, ratio, ratio, ratio, 6, 1, heads, 6, 9, 1, 1, "CPU"), strict=True))
        for size, gain in ((1, 0.0), (64, 0.2))
        for run, heads, ratio in (("baseline/seed-1", 6, 1.0), ("pruned/all/lam-0.1/seed-1", 3, 1 + gain))
    ]
    write_tsv(baseline / "speed.tsv", rows, speed)
    for name in ("lrp.tsv", "confidence.tsv", "importance.tsv"):
        write_tsv(baseline / name, [], COLUMNS[name])
    table = gathered("claims", [run for run in runs if NEEDS["claims"].wants(run_of(run)[1])])
    found = {row["claim"]: row for row in table.to_dict("records") if "test set itself" not in row["measure"]}
    assert found["40 % of the heads can be masked without a noticeable loss"]["ours"] == pytest.approx(0.6)
    ours = found["Most heads can be spared one at a time"]
    assert (ours["ours"], ours["holds"]) == (pytest.approx(2 / 6), "unclear")
    assert found["Importance orders heads better than masking each alone does"]["ours"] == pytest.approx(2.0)
    assert found["Pruned models gain speed in large batches"]["ours"] == pytest.approx(0.2)
    assert found["Every layer can do with one head"]["ours"] == 1.0
    assert found["The same heads matter in another domain"]["holds"] == ""

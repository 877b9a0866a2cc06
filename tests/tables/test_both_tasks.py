"""Tables with classifiers in them: their metric, what rows are compared with, the paper's layers beside ours."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fake_labels import MAJORITY, write_told
from fake_results import World, write_results
from heads.base.files import read_json
from heads.base.names import ACCURACY, BLEU
from heads.base.runs import run_of
from heads.tables.catalogue import TABLES
from heads.tables.claims_michel import MICHEL_CLAIMS, share
from heads.tables.gathering import table_of_runs
from heads.tables.michel import PAPER


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders of all runs of a classification experiment: three layers of four heads."""
    return write_told(tmp_path_factory.mktemp("results") / "told", World(layers=3, heads=4, lams=("0.03", "0.1")))


def test_a_pruned_classifier_stands_beside_the_accuracy_of_its_relatives_and_no_number_of_a_paper(
    runs: list[Path],
) -> None:
    kinds = {run.parts[-4]: run for run in runs if "lam-0.1" in run.parts} | {"baseline": runs[0]}
    accuracy = {kind: read_json(run / "accuracy.json")["accuracy"] for kind, run in kinds.items() if kind != "gates"}
    table = table_of_runs("pruning", runs)
    assert len(table) == 4 and table["paper_tag"].isna().all() and {*table["sentences"]} == {500}
    row, ours = table.set_index(["kind", "lam"]).loc["pruned", "0.1"], accuracy.pop("pruned")
    assert (row["metric"], row["score"], row["majority"]) == (ACCURACY, ours, MAJORITY)
    assert row["matthews"] == pytest.approx(ours / 100)
    assert {name: row[f"score_{name}"] for name in accuracy} == accuracy
    assert [row[f"score_minus_{name}"] for name in accuracy] == pytest.approx([ours - own for own in accuracy.values()])


def test_single_heads_have_accuracy_and_no_rows_of_a_paper_without_numbers(runs: list[Path]) -> None:
    """The made-up files say of Matthews' correlation that the first head of each layer changes it significantly."""
    table = table_of_runs("michel_table1", runs)
    assert len(table) == 12 and {*table["metric"]} == {ACCURACY}
    assert {*table["matthews"]} == {0.7} and {*table["matthews_change"]} == {0.01}
    assert {*table["significant"]} == {0, 1}
    assert [*table["matthews_significant"]] == [int(head == 0) for head in table["head"]]


def test_correlations_are_of_the_ranks_of_a_classifiers_own_measures(runs: list[Path]) -> None:
    found, heads = table_of_runs("correlations", runs), table_of_runs("measures", runs)
    assert {*found["attention"]} == {"enc_self"}
    told = found.set_index(["attention", "measure_a", "measure_b"])
    for pair in combinations(("lrp_plain_signed_by_step", "confidence", "score_lost"), 2):
        ranks = heads[[*pair]].rank().to_numpy()
        expected = np.corrcoef(ranks.T)[0, 1]
        assert told.loc[("enc_self", *pair), "rho"] == pytest.approx(expected, abs=1e-9) and abs(expected) > 0.01
    assert {*found["heads"]} <= {12}


def test_layers_stand_beside_berts_at_the_same_depth(runs: list[Path]) -> None:
    table = table_of_runs("michel_table2", runs)
    assert table["paper_layer"].tolist() == [0, 6, 11]
    assert table["paper_score_change"].tolist()[::2] == [-0.01, -0.15]
    assert table["paper_score_change_oracle"].tolist()[::2] == [-0.01, -0.12]


def test_translators_and_classifiers_share_tables_each_with_its_metric_and_the_numbers_of_the_paper_about_it(
    runs: list[Path], tmp_path: Path
) -> None:
    both = [*runs, *write_results(tmp_path / "written", World(layers=3, heads=2, lams=("0.1",)))]
    metrics = {"told": {ACCURACY}, "written": {BLEU}}
    for name in ("pruning", "michel_table1", "michel_table2"):
        table = table_of_runs(name, [run for run in both if TABLES[name].need.wants(run_of(run)[1])])
        ours = table[~table["experiment"].str.startswith(PAPER)]
        assert {one: {*rows["metric"]} for one, rows in ours.groupby("experiment")} == metrics
        alone = table_of_runs(name, [run for run in runs if TABLES[name].need.wants(run_of(run)[1])])
        told = ours[ours["experiment"] == "told"].reset_index(drop=True)
        pd.testing.assert_frame_equal(told.astype(object), alone.astype(object))
    layers = table_of_runs("michel_table2", [run for run in both if run.parent.name == "baseline"])
    assert layers[layers["attention"] == "enc_self"]["paper_layer"].tolist() == [0, 6, 11, 0, 3, 5]


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


def test_claims_about_classifiers_have_verdicts_of_their_own(runs: list[Path]) -> None:
    """Accuracy by importance is 92 - k^2 with k of four steps; the order by ablation is 4 k^2 behind."""
    alone = table_of_runs("michel_table1", runs)
    table = table_of_runs("claims", [run for run in runs if TABLES["claims"].need.wants(run_of(run)[1])])
    found = {row["claim"]: row for row in table.to_dict("records") if "test set itself" not in row["measure"]}
    assert found["40 % of the heads can be masked without a noticeable loss"]["ours"] == pytest.approx(0.25)
    lose = (alone["significant"] == 1) & (alone["score_change"] < 0)
    assert found["Most heads can be spared one at a time"]["ours"] == pytest.approx(lose.mean())
    behind = found["Importance orders heads better than masking each alone does"]
    assert behind["ours"] == pytest.approx(4 * (1 + 4 + 9) / 3)
    assert found["Pruned models gain speed in large batches"]["ours"] == pytest.approx(0)
    assert found["Every layer can do with one head"]["ours"] == 1.0
    assert found["The same heads matter in another domain"]["holds"] == ""

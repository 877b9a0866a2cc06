"""Ways to choose heads: what is masked and tested, the table that gathers them, and the sentence in the figure."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from drawn_figures import draw
from fake_results import World, table_of, write_results
from few_heads import USEFUL, random_batch, translator, with_useful_heads
from heads.__main__ import main
from heads.analysis.choices import choices_of, masked_rows
from heads.base.files import read_tsv, write_json, write_lines, write_text
from heads.base.targets import Target
from heads.figures.selection import verdict
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.tables.catalogue import FIGURES
from heads.tables.reading import load_runs
from heads.tables.selection import method_of, selection_table
from heads.tables.verdicts import t_quantile
from shape_facts import facts_with_shape

WORLD = World(layers=2, heads=3, lams=("0.1",), scratch=False, seeds=(1, 2))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_results(tmp_path_factory.mktemp("results") / "rich", WORLD)


@pytest.fixture(scope="module")
def table(runs: list[Path]) -> pd.DataFrame:
    return selection_table(load_runs(FIGURES["selection"].need, runs))


def only(table: pd.DataFrame, target: str, treatment: str) -> pd.Series:
    return table[(table["target"] == target) & (table["treatment"] == treatment) & (table["seed"] == 1)].iloc[0]


def test_masking_the_faint_heads_changes_no_translation_and_masking_the_useful_ones_does(
    tiny_model: Callable[..., Transformer],
) -> None:
    model, batch, seen = with_useful_heads(tiny_model()), random_batch(7, 2), []
    translate = translator(model, batch)

    def counted(gates: Gates | None) -> list[str]:
        seen.append(gates)
        return translate(gates)

    heads = model.shape.heads()
    useful = {"lrp-4": USEFUL, "optimal-4": USEFUL, "reversed-14": [head for head in heads if head not in USEFUL]}
    rows = [
        {"method": name.split("-")[0], "budget": name.split("-")[1], "attention": a, "layer": str(n), "head": str(h),
         "open": str(int((a, n, h) in kept))}
        for name, kept in useful.items() for a, n, h in heads
    ]  # fmt: skip
    table = masked_rows(model, choices_of(rows), counted, translate(None), resamples=100)
    assert [row["target"] for row in table] == list(useful)
    assert [(row["kept"], row["of"]) for row in table] == [(4, 18), (4, 18), (14, 18)]
    assert [row["bleu"] for row in table[:2]] == pytest.approx([100, 100])
    assert table[0]["bleu_change"] == 0 and table[0]["p_value"] == 1
    assert float(str(table[2]["bleu"])) < 90 and float(str(table[2]["p_value"])) < 0.05
    assert len(seen) == 3  # the unpruned model, and each set of heads once


def test_targets_are_told_apart_by_method_and_draw() -> None:
    texts = ("lam-0", "lam-0.1", "keep-4-6-8", "dsp-9", "random12-3", "lrp-3", "stratified3-9")
    assert [(method_of(target), target.draw) for target in map(Target.parse, texts)] == [
        ("control", None), ("gates_lambda", None), ("gates", None), ("dsp", None), ("random", 12), ("lrp", None),
        ("stratified", 3),
    ]  # fmt: skip


def test_a_row_is_put_beside_random_draws_of_as_many_heads_that_were_treated_alike(table: pd.DataFrame) -> None:
    gates, few = (only(table, target, "trained on") for target in ("keep-9", "keep-4"))
    masked = only(table, "token-9", "masked")
    assert gates["score_random_mean"] == pytest.approx(80 + 2 + 9 + 1)
    assert (gates["random_draws"], gates["draws_below"], few["draws_below"]) == (3, 1, 3)
    assert only(table, "reversed-4", "masked")["draws_below"] == 3
    assert masked["score_minus_random_mean"] == pytest.approx(30 + 9 - (10 + 2 + 9))
    without = (
        ("random2-9", "trained on"),
        ("stratified2-9", "trained on"),
        ("lam-0", "trained on"),
        ("keep-9", "own training"),
    )
    for row in (only(table, *place) for place in without):
        assert np.isnan(row[["random_draws", "draws_below", "score_minus_random_low"]].astype(float)).all()


def test_importance_alone_is_put_beside_draws_of_as_many_heads_of_each_kind(table: pd.DataFrame) -> None:
    masked, tuned = only(table, "example_layer-9", "masked"), only(table, "example_layer-4", "trained on")
    assert masked["score_minus_stratified_mean"] == pytest.approx(30 + 9 - (20 + 2 * 2 + 9))
    assert tuned["score_stratified_mean"] == pytest.approx(82 + 1 + 4 + 1)
    assert (tuned["stratified_draws"], tuned["stratified_draws_below"], tuned["random_draws"]) == (3, 3, 3)
    assert only(table, "example_layer-9", "trained on")["stratified_draws_below"] == 1
    # Draws with a deviation of a half.
    assert tuned["score_minus_stratified_low"] == pytest.approx(5 - 4.303 * (4 / 3) ** 0.5 / 2, abs=1e-3)
    assert set(table[table["stratified_draws"].notna()]["method"]) == {"example_layer"}


def test_the_difference_from_one_more_random_draw_has_an_interval_by_students_t(table: pd.DataFrame) -> None:
    """Draws of 91, 92 and 93: a deviation of 1 and 2 degrees of freedom, whose quantile in printed tables is 4.303."""
    row = only(table, "lrp-9", "trained on")
    ends = [row["score_minus_random_low"], row["score_minus_random_high"]]
    assert ends == pytest.approx([0.5 - 4.303 * (4 / 3) ** 0.5, 0.5 + 4.303 * (4 / 3) ** 0.5], abs=1e-3)
    # The oracle: in sets of four exchangeable numbers, the first lies outside in one set of twenty.
    drawn = np.random.default_rng(4).normal(size=(4000, 4))
    margin = drawn[:, 1:].std(axis=1, ddof=1) * (ends[1] - 0.5)
    assert (abs(drawn[:, 0] - drawn[:, 1:].mean(1)) > margin).mean() == pytest.approx(0.05, abs=0.012)
    assert [t_quantile(n) for n in (2, 5, 10, 99)] == pytest.approx([12.706, 2.776, 2.262, 2.262], abs=1e-3)
    assert np.isnan(t_quantile(1))


def test_gates_are_told_as_cut_out_and_trained_on_and_as_they_come_out_of_their_own_training(
    table: pd.DataFrame,
) -> None:
    both = {treatment: only(table, "dsp-4", treatment)["score"] for treatment in ("trained on", "own training")}
    assert both == {"trained on": 82.5 + 4 + 5 + 1, "own training": 75 + 4 + 1}


def test_the_control_stands_beside_models_that_were_treated_alike(table: pd.DataFrame) -> None:
    assert only(table, "dsp-9", "trained on")["score_minus_control"] == pytest.approx(82.5 + 9 - 93.5)
    assert only(table, "dsp-9", "own training")["score_minus_control"] == pytest.approx(75 + 9 - 93)
    assert np.isnan(only(table, "token-9", "masked")["score_control"])
    assert set(table["score_baseline"]) == {93.0, 94.0}


def test_the_table_command_adds_mean_and_spread_over_seeds(runs: list[Path]) -> None:
    rows = [row for row in table_of("selection", runs) if (row["target"], row["treatment"]) == ("dsp-4", "trained on")]
    assert [row["seed"] for row in rows] == ["1", "2", "mean", "sd"]
    assert rows[2]["score"] == f"{82.5 + 4 + 5 + 1.5:.2f}"


def test_the_sentence_gives_each_method_its_difference_from_the_mean_of_the_draws_and_its_rank(
    table: pd.DataFrame,
) -> None:
    both = verdict(table)
    assert "mean of 3 random choices" in both
    assert "at 9 heads gates −0.5 (−5.5 to +4.5, above 1), subset pruning +0.5 (−4.5 to +5.5, above 2)" in both
    assert "importance +6.0 (+1.0 to +11.0, above 3)" in both and ". 4 of 8 intervals lie above zero. Beside 3" in both
    assert "at 4 heads gates +9.5 (+4.5 to +14.5, above 3)" in both
    assert both.endswith(
        "Beside 3 random choices with as many heads of each kind of attention: at 9 heads importance +0.0 "
        "(−2.5 to +2.5, above 1); at 4 heads importance +5.0 (+2.5 to +7.5, above 3). 1 of 2 intervals lie above zero."
    )
    only_random = verdict(table[table["method"] != "stratified"].assign(stratified_draws=np.nan))
    assert only_random.endswith(" 4 of 8 intervals lie above zero.") and only_random in both
    assert "was not measured" in verdict(table[table["treatment"] != "trained on"])
    assert "reversed" not in both


def test_results_from_before_there_were_stratified_draws_are_read_and_their_columns_stay_empty(
    runs: list[Path],
) -> None:
    frames = dict(load_runs(FIGURES["selection"].need, runs))
    for name, column in (("masked.tsv", "target"), ("compared.tsv", "run")):
        frames[name] = frames[name][~frames[name][column].str.contains("stratified")]
    table = selection_table(frames)
    assert len(table) and table.filter(like="stratified").isna().all(axis=None)
    assert only(table, "keep-9", "trained on")["random_draws"] == 3
    assert "of each kind" not in verdict(table) and "at 9 heads gates" in verdict(table)
    assert len(draw("selection", frames).axes[1].collections) == 1


def test_the_figure_has_a_band_of_the_draws_and_hollow_marks_where_nothing_is_sure(runs: list[Path]) -> None:
    _, tuned = draw("selection", runs[:1]).axes
    corners = np.asarray(tuned.collections[0].get_paths()[0].vertices).tolist()
    hollow = {
        tuple(point)
        for line in tuned.lines
        if to_hex(line.get_markerfacecolor()) == "#ffffff"
        for point in np.asarray(line.get_xydata()).tolist()
    }
    assert {(4.0, 86.0), (4.0, 88.0), (9.0, 91.0), (9.0, 93.0)} <= {tuple(corner) for corner in corners}
    within = {tuple(corner) for corner in np.asarray(tuned.collections[1].get_paths()[0].vertices).tolist()}
    assert {(4.0, 87.5), (4.0, 88.5), (9.0, 92.5), (9.0, 93.5)} <= within
    # Fine-tuned models that may be as good as the unpruned one, except the control.
    rows = [row for row in read_tsv(runs[0] / "compared.tsv") if float(row["p_value"]) >= 0.05]
    unsure = {(float(row["kept"]), float(row["bleu"])) for row in rows if "lam-0/" not in row["run"]}
    assert hollow == unsure and len(unsure) > 2


def test_every_fine_tuned_model_is_tested_against_the_unpruned_one(tmp_path: Path) -> None:
    root = tmp_path / "results" / "tiny"
    references = [f"the cat number {i} sees the small dog of the old house" for i in range(30)]
    worse = [line.replace("small dog", "tree") for line in references]
    write_lines(tmp_path / "references.txt", [*references, "one that was not translated"])
    runs = {"baseline/seed-1": references, "selected/all/lrp-2/seed-1": worse, "pruned/all/keep-2/seed-1": references}
    for run, text in runs.items():
        live = {"enc_self": [[0, 1]], "dec_self": [[0]], "dec_enc": [[1] if "/all/" in run else [0, 1, 2]]}
        updates = 9 if "/all/" in run else 4
        write_json(root / run / "model.json", {"shape": facts_with_shape(live), "total_updates": updates})
        write_lines(root / run / "translations.txt", text)
    write_text(tmp_path / "s.yaml", "selection: {at_least: {}, resamples: 100}\n")
    words = ["compared", "--settings", str(tmp_path / "s.yaml"), "--references", str(tmp_path / "references.txt")]
    folders = [str(root / run) for run in runs]
    out = tmp_path / "compared.tsv"
    assert main([*words, "--baseline", folders[0], "--runs", *folders[1:], "--out", str(out)]) == 0
    lrp, keep = read_tsv(out)
    assert (lrp["run"], lrp["kept"], lrp["of"], lrp["updates"]) == ("selected/all/lrp-2/seed-1", "4", "6", "5")
    assert float(lrp["bleu"]) < 80 and float(lrp["p_value"]) < 0.05
    assert (float(keep["bleu_change"]), float(keep["p_value"])) == (0, 1)

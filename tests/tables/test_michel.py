"""Tables and figures of Michel et al. 2019: what is compared with what, what is averaged, and what is drawn."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from drawn_figures import draw, lines_of
from fake_results import World, table_of, write_results
from heads.base.columns import SPEED_COLUMNS
from heads.base.files import read_tsv, write_tsv
from heads.base.names import ATTENTIONS, BLEU
from heads.figures.style import TYPE_COLOURS
from heads.tables.catalogue import FIGURES, TABLES
from heads.tables.michel import checkpoints_table, heads_table, layers_table
from heads.tables.reading import MATTHEWS, load_reference, load_runs

WORLD = World(layers=3, heads=4, lams=("0.01",), seeds=(1, 2))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [r for r in write_results(tmp_path_factory.mktemp("results") / "first", WORLD) if "baseline" in r.parts]


def test_the_papers_tables_say_what_its_text_says() -> None:
    heads, layers = load_reference("michel_table1_heads.csv"), load_reference("michel_tables2_5_layers.csv")
    significant = heads[heads["significant"] == 1]
    assert (len(heads), len(significant), int((significant["score_change"] > 0).sum())) == (96, 8, 4)
    assert (len(layers), int((layers["significant"] == 0).sum())) == (18, 9), "half of the layers survive (sec. 3.3)"
    worst = layers.loc[layers["score_change"].idxmin()]
    assert (worst["attention"], worst["layer"], worst["score_change"]) == ("dec_enc", 5, -18.89)


@pytest.mark.parametrize(("layers", "paper"), [(3, [0, 3, 5]), (6, [0, 1, 2, 3, 4, 5]), (2, [0, 5]), (1, [0])])
def test_a_layer_stands_beside_the_papers_layer_of_the_same_depth(layers: int, paper: list[int]) -> None:
    values = dict.fromkeys(("score", "score_change", "p_value", "score_change_oracle", "p_value_oracle"), 0.0)
    found = pd.DataFrame(
        [{"experiment": "e", "seed": 1, "metric": BLEU, "attention": "dec_enc", "layer": n, "heads": 4,
          "head_chosen": 0, "head_oracle": 1, **values} for n in range(layers)]
    )  # fmt: skip
    reference = load_reference("michel_tables2_5_layers.csv")
    result = layers_table({"layers_to_one.tsv": found}, reference)
    assert result["paper_layer"].tolist() == paper
    assert result["paper_score_change_oracle"].iloc[0] == 0.24
    assert layers == 1 or result["paper_score_change"].iloc[-1] == -18.89


def test_the_curve_says_how_much_of_its_own_start_is_kept(runs: list[Path]) -> None:
    rows = table_of("michel_masking_curve", runs)
    row = next(r for r in rows if (r["order"], r["attention"], r["masked"], r["seed"]) == ("token", "all", "3", "1"))
    # fake_results: the second order falls by 2 k^2 from 92.
    assert (row["score"], row["score_change"], row["masked_percent"]) == ("74.00", "-18.00", "75.0")
    assert float(row["kept_percent"]) == pytest.approx(100 * 74 / 92, abs=0.05)
    assert sum(r["seed"] == "mean" for r in rows) == 10 * 5


def rows_of(*rows: tuple[object, ...], columns: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns.split()).assign(
        experiment="e", seed=1, metric=BLEU, **dict.fromkeys(MATTHEWS, np.nan)
    )


def test_a_heads_row_holds_its_change_on_test_and_that_on_dev_and_is_significant_below_one_in_a_hundred() -> None:
    columns = "attention layer head score score_change p_value"
    test = rows_of(("enc_self", 0, 0, 30.5, 0.5, 0.0099), ("enc_self", 0, 1, 28.0, -2.0, 0.01), columns=columns)
    dev = rows_of(("enc_self", 0, 1, 40.0, -1.0, 0.001), ("enc_self", 0, 0, 41.25, 0.25, 0.9), columns=columns)
    paper = load_reference("michel_table1_heads.csv")
    first, second, *rest = heads_table({"ablation.tsv": test, "ablation.dev.tsv": dev}, paper).to_dict("records")
    names = ("score_change", "p_value", "significant", "score_change_dev", "p_value_dev", "significant_dev")
    assert [first[name] for name in names] == [0.5, 0.0099, 1, 0.25, 0.9, 0]
    assert [second[name] for name in names] == [-2.0, 0.01, 0, -1.0, 0.001, 1]
    assert (rest[5]["score_change"], rest[5]["significant"], rest[5]["tag"]) == (-0.53, 1, "[second-hand]")
    assert {row["experiment"] for row in rest} == {"paper, WMT EN-FR"} and len(rest) == 96


def test_a_layers_row_keeps_the_head_chosen_on_dev_apart_from_the_oracle_and_from_the_paper() -> None:
    chosen = {"heads": 4, "head_chosen": 2, "score_change": -3.0, "p_value": 0.02}
    oracle = {"head_oracle": 1, "score_change_oracle": -1.0, "p_value_oracle": 0.002}
    layer = {"experiment": "e", "seed": 1, "metric": BLEU, "attention": "enc_self", "layer": 0, **chosen, **oracle}
    rows = pd.DataFrame([layer, layer | {"layer": 1}])
    table = layers_table({"layers_to_one.tsv": rows}, load_reference("michel_tables2_5_layers.csv"))
    first, last = table.to_dict("records")
    assert {name: first[name] for name in (*chosen, *oracle)} == chosen | oracle
    assert (first["significant"], first["significant_oracle"]) == (0, 1)
    numbers = ("score_change", "significant", "score_change_oracle", "significant_oracle")
    paper = ["paper_layer", *(f"paper_{name}" for name in numbers)]
    assert [first[name] for name in paper] == [0, -1.96, 1, -1.31, 1]
    assert [last[name] for name in paper] == [5, -0.67, 1, -0.36, 1]


def test_the_table_of_moments_tells_the_share_of_each_moments_own_bleu_beside_the_papers_epoch() -> None:
    """Steps of a quarter: the second, 50 %, is nearer to the paper's 40 % than the first, 25 %."""
    columns = "update epoch finished order attention masked of share score"
    columns += " score_change_low score_change_high score_kept_low score_kept_high"
    steps = [(0, 0.0), (3, 0.25), (6, 0.5), (9, 0.75), (12, 1.0)]
    walks = ((70, 7.5, 0, (20.0, 19.0, 16.0, 5.0, 0.0)), (20, 0.4, 0, (0.0,) * 5),
             (130, 14.0, 1, (40.0, 39.0, 30.0, 9.0, 1.0)))  # fmt: skip
    rows = [
        (update, epoch, done, "example", "all", masked, 12, share, value, -2.0, -1.0, share / 2, share)
        for update, epoch, done, bleu in walks
        for (masked, share), value in zip(steps, bleu, strict=True)
    ]
    frames = {"checkpoints.tsv": rows_of(*rows, columns=columns)}
    table = checkpoints_table(frames, load_reference("michel_figure5_moments.csv"))
    kept = {int(update): part["kept_percent"].tolist() for update, part in table.groupby("update")}
    assert kept[70] == [100, 95, 80, 25, 0]
    assert kept[130] == [100, 97.5, 75, 22.5, 2.5]
    assert np.isnan(kept[20]).all(), "nothing to keep"
    ends = table[(table["update"] == 70) & (table["masked"] == 3)].iloc[0]
    assert (ends["kept_percent_low"], ends["kept_percent_high"]) == (12.5, 25)
    last = table[table["update"] == 130].set_index("masked_percent")
    assert last.loc[50, ["score_change", "score_change_low", "score_change_high"]].tolist() == [-10, -2, -1]
    # 7.5 is 1.3 times less than 10 and 1.5 times more than 5; 14 is nearer to 10 than to 20 either way.
    assert table.groupby("update")["paper_epoch"].first().to_dict() == {20: 1, 70: 10, 130: 10}
    beside = table[table["masked"] == 0].set_index("update")["paper_score"]
    assert beside.to_dict() == {70: 30.6, 20: 3.0, 130: 30.6}
    assert table["paper_score"].notna().sum() == 3
    band = table.dropna(subset="paper_kept_percent_low")
    assert band[["update", "masked"]].to_numpy().tolist() == [[70, 6], [130, 6]], "not before epoch 10"
    assert band[["paper_kept_percent_low", "paper_kept_percent_high"]].to_numpy().tolist() == [[85, 90]] * 2


def test_the_papers_moments_are_those_of_its_figure() -> None:
    paper = load_reference("michel_figure5_moments.csv")
    bleu = dict(zip(paper["epoch"], paper["score"], strict=True))
    assert bleu == {1: 3.0, 2: 6.2, 3: 18.1, 5: 26.9, 10: 30.6, 20: 34.5, 30: 34.7, 40: 34.9}
    assert (paper["kept_percent_low"].notna() == (paper["epoch"] >= 10)).all()


def test_the_bars_of_the_first_figure_hold_every_head_once(runs: list[Path]) -> None:
    frames = load_runs(FIGURES["michel_fig1"].need, runs)
    axes = draw("michel_fig1", frames).axes
    heights = [sum(bar.get_height() for bar in each.patches) for each in axes]  # type: ignore[attr-defined]
    dark = [
        sum(bar.get_height() for bar in each.patches if bar.get_facecolor() == to_rgba(TYPE_COLOURS[kind]))  # type: ignore[attr-defined]
        for each, kind in zip(axes, (*ATTENTIONS, "enc_self"), strict=True)
    ]
    edges = [{round(bar.get_x(), 6) for bar in each.patches} for each in axes]  # type: ignore[attr-defined]
    assert heights == [12, 12, 12, 96]
    assert dark[3] == 8 and axes[3].texts[0].get_text() == "8 of 96\nsignificant"
    assert all(0 in left for left in edges), "a loss and a gain never share a bar"
    for each, kind in zip(axes, ("enc_self", "dec_self", "dec_enc"), strict=False):
        heads = frames["ablation.tsv"]
        first = heads[(heads["seed"] == 1) & (heads["attention"] == kind)]
        significant = int((first["p_value"] < 0.01).sum())
        assert each.texts[0].get_text() == f"{significant} of 12\nsignificant"
        assert dark[ATTENTIONS.index(kind)] == significant


def test_the_second_figure_tells_the_correlation_of_what_it_shows(runs: list[Path]) -> None:
    frames = load_runs(FIGURES["michel_fig2"].need, runs)
    axes = draw("michel_fig2", frames).axes
    drawn = [np.concatenate([np.asarray(line.get_xydata()) for line in each.lines[:3]]) for each in axes]
    titles = [each.get_title(loc="left") for each in axes]
    assert len(drawn[0]) == 36 > len(drawn[1])
    keys = ["attention", "layer", "head"]
    test, dev = (
        frames[name].query("seed == 1").set_index(keys)["score_change"] for name in ("ablation.tsv", "ablation.dev.tsv")
    )
    assert sorted(map(tuple, drawn[0].tolist())) == sorted(zip(dev, test[dev.index], strict=True)), (
        "x is dev, y is test"
    )
    reach = 1.5 * np.median(np.abs(drawn[0]))
    assert sorted(map(tuple, drawn[1].tolist())) == sorted(
        tuple(p) for p in drawn[0].tolist() if max(map(abs, p)) <= reach
    )
    for points, title in zip(drawn, titles, strict=True):
        assert title.endswith(f"r = {np.corrcoef(points.T)[0, 1]:.2f}")


def test_the_second_figure_compares_test_with_another_domain_where_there_is_one(tmp_path: Path) -> None:
    run = write_results(tmp_path / "first", World(layers=2, heads=3, lams=()))[0]
    for label in ("dev", "other domain"):
        axes = draw("michel_fig2", [run]).axes[0]
        assert axes.get_xlabel() == f"BLEU change without the head, {label}"
        # For the next round; a domain where every head costs the same as on test.
        shutil.copy(run / "ablation.tsv", run / "ablation.out_of_domain.tsv")
    points = np.concatenate([np.asarray(line.get_xydata()) for line in axes.lines[:3]])
    assert len(points) == 18 and (points[:, 0] == points[:, 1]).all()


def test_every_order_and_form_of_importance_is_drawn_under_its_own_name(runs: list[Path]) -> None:
    left, right = map(lines_of, draw("michel_fig3", runs[:1]).axes)
    falls = {"importance": 1, "each head masked alone, dev": 5, "the same on test (oracle)": 6, "random, 1 orders": 7}
    forms = {"absolute by sentence (the paper's)": 1, "absolute by token": 2, "absolute by batch": 3, "signed": 4}
    forms["random, 1 orders"] = 7
    for lines, found in ((left, falls), (right, forms)):
        for label, fall in found.items():
            assert lines[label] == [[25 * k, 92 - fall * k**2] for k in range(5)], label


def test_random_orders_are_a_mean_within_the_best_and_the_worst_of_them(runs: list[Path]) -> None:
    frames = load_runs(FIGURES["michel_fig3"].need, runs[:1])
    curve = frames["masking_curve.tsv"]
    first = curve[curve["order"] == "random-1"]
    other = first.assign(order="random-2", score=first["score"] + 2 * first["masked"])
    axes = draw("michel_fig3", {**frames, "masking_curve.tsv": pd.concat([curve, other])}).axes[0]
    corners = {tuple(point) for point in axes.collections[0].get_paths()[0].vertices.tolist()}  # type: ignore[union-attr]
    assert [y for _, y in lines_of(axes)["random, 2 orders"]] == [92 - 7 * k**2 + k for k in range(5)]
    assert {(25.0 * k, 92.0 - 7 * k**2 + gain) for k in range(5) for gain in (0, 2 * k)} <= corners


def test_the_curves_go_through_the_points_of_the_file(runs: list[Path]) -> None:
    shares, numbers = map(lines_of, draw("michel_fig4", runs[:1]).axes)
    falls = {"encoder self-attention": 8, "decoder self-attention": 9, "cross-attention": 10}
    for label, fall in (falls | {"all kinds together": 1}).items():
        assert numbers[label] == [[k, 92 - fall * k**2] for k in range(5)]
        assert shares[label] == [[25 * k, 92 - fall * k**2] for k in range(5)]


def test_a_moment_without_any_bleu_has_no_share_of_it(runs: list[Path]) -> None:
    score, shown, _ = draw("michel_fig5", runs).axes
    kept = np.ma.filled(np.asarray(shown.collections[0].get_array(), float).reshape(3, 5), np.nan)
    labels = [label.get_text() for label in shown.get_yticklabels()]
    assert labels == ["0\n(0.0)", "10\n(30.7)", "30, finished\n(92.0)"]
    assert kept[1] == pytest.approx(kept[2], rel=1e-4)
    assert kept[2][4] == pytest.approx(100 * 76 / 92, rel=1e-4)
    assert [text.get_text() for text in shown.texts] == [f"{value:.0f}" for value in kept[1:].ravel()]
    drawn = lines_of(score)
    assert list(drawn) == ["0", "10", "30, finished"]
    assert [y for _, y in drawn["10"]] == pytest.approx([(92 - k**2) / 3 for k in range(5)], rel=1e-5)


def test_every_item_of_the_paper_has_a_name_with_its_number() -> None:
    assert {"michel_layers", *(f"michel_fig{number}" for number in range(1, 6))} <= set(FIGURES)
    assert {"michel_table1", "michel_table2", "michel_masking_curve", "michel_checkpoints"} <= set(TABLES)


def test_the_table_puts_the_papers_row_of_the_same_batch_size_beside_ours(tmp_path: Path) -> None:
    runs = write_results(tmp_path / "tiny", World(lams=("0.25",), seeds=(1,)))
    rows = {(row["kind"], row["batch_sentences"]): row for row in table_of("speed", runs)}
    assert set(rows) == {(kind, size) for kind in ("baseline", "pruned") for size in ("1", "5", "64")}
    ours, unpruned = rows["pruned", "64"], rows["baseline", "64"]
    assert [ours[f"faster_percent{end}"] for end in ("", "_low", "_high")] == ["25.0", "12.5", "50.0"]
    assert (ours["lam"], ours["scope"], unpruned["scope"], unpruned["faster_percent"]) == ("0.25", "all", "", "0.0")
    assert [ours[name] for name in ("keep", "heads", "of", "examples_per_second")] == ["", "16", "36", "1600"]
    paper = ("paper_model", "paper_examples_per_second", "paper_examples_per_second_spread", "paper_faster_percent")
    model = "BERT on MNLI, GTX 1080Ti, "
    assert [ours[name] for name in paper] == [f"{model}50% of heads removed", "146.6", "3.4", "17.5"]
    assert [unpruned[name] for name in paper] == [f"{model}unpruned", "124.7", "2.9", ""]
    assert {rows[kind, "5"]["paper_tag"] for kind in ("baseline", "pruned")} == {""}


def test_the_tables_rows_of_one_device_stand_together_and_seeds_are_averaged_within_it(tmp_path: Path) -> None:
    runs = write_results(tmp_path / "tiny", World(lams=("0.25",), seeds=(1, 2)))
    for path in tmp_path.rglob("speed.tsv"):
        rows = read_tsv(path)
        faster = {"device": "A GPU", "ratio": "1.5", "ratio_low": "1.4", "ratio_high": "1.6"}
        write_tsv(path, [row for pair in ((row | faster, row) for row in rows) for row in pair], SPEED_COLUMNS)
    table = table_of("speed", runs)
    half = len(table) // 2
    assert [row["device"] for row in table] == ["CPU, 1 threads"] * half + ["A GPU"] * half
    means = {(row["device"], row["kind"]): row["faster_percent"] for row in table if row["seed"] == "mean"}
    assert means == {("CPU, 1 threads", "baseline"): "0.0", ("CPU, 1 threads", "pruned"): "25.0",
                     ("A GPU", "baseline"): "50.0", ("A GPU", "pruned"): "50.0"}  # fmt: skip


def test_the_gains_of_the_papers_table_follow_from_its_rates_up_to_rounding() -> None:
    paper = load_reference("michel_table4_speed.csv")
    is_first = paper["model"] == "unpruned"
    unpruned, pruned = (paper[rows].set_index("batch_sentences") for rows in (is_first, ~is_first))
    gain = 100 * (pruned["examples_per_second"] / unpruned["examples_per_second"] - 1)
    assert (abs(gain - pruned["gain_percent"]) < 0.3).all()
    assert list(gain.index) == [1, 4, 16, 64]

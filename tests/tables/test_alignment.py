"""Word alignment by cross-attention, on rows made by hand: the table, the figure, and claims met and not met."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from drawn_figures import draw, lines_of
from fake_results import World, write_results
from heads.tables.catalogue import FIGURES, TABLES
from heads.tables.claims_alignment import ALIGNMENT_CLAIMS
from heads.tables.cross_attention import alignment_table
from heads.tables.reading import READ_COLUMNS, RUN_COLUMNS, Frames, frame_of, load_reference, load_runs
from heads.tables.verdicts import TOO_FEW, Finding, holds

BASELINE = ("x", "baseline", "", "", "", "", 1)
PRUNED = ("x", "pruned", "all", "", "0.1", "", 1)
# layer, head, error rates by output and input, whether it aligns by output
HEADS = {BASELINE: [(0, 0, 0.7, 0.9, 0), (0, 1, 0.6, 0.8, 0), (0, 2, 0.6, 0.75, 0), (1, 0, 0.3, 0.5, 1),
                    (1, 1, 0.95, 0.2, 0), (1, 2, 0.4, 0.45, 1)],
         PRUNED: [(1, 1, 0.35, 0.5, 1)]}  # fmt: skip


def frames() -> Frames:
    rows: list[dict[str, Any]] = []
    model = []
    for run, heads in HEADS.items():
        identity = dict(zip(RUN_COLUMNS, run, strict=True))
        for place, step in enumerate(("output", "input")):
            for layer, head, *rates, aligns in heads:
                aer = rates[place]
                row = {"step": step, "layer": layer, "head": head, "aer": aer, "aer_low": aer - 0.01,
                       "aer_high": aer + 0.02, "precision": aer + 0.03, "recall": aer + 0.04, "offset": 1,
                       "offset_aer": 0.55, "gain": 0.55 - aer, "gain_low": 0.5 - aer, "gain_high": 0.6 - aer,
                       "links": 90, "pairs": 9, "aligns": aligns if step == "output" else 1 - aligns}  # fmt: skip
                rows.append({**identity, **row})
        live = {(layer, head) for layer, head, *_ in heads}
        for attention in ("enc_self", "dec_enc"):
            for layer in range(2):
                for head in range(3):
                    there = attention == "enc_self" or (layer, head) in live
                    model.append({**identity, "attention": attention, "layer": layer, "head": head, "live": int(there)})
    return {"alignment_heads.tsv": pd.DataFrame(rows), "model.json": pd.DataFrame(model)}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return alignment_table(frames())


def test_each_layer_of_each_model_has_a_row_with_its_heads_left_and_those_that_align(table: pd.DataFrame) -> None:
    columns = ["kind", "layer", "live", "of", "aligning", "aligning_heads"]
    assert table[columns].to_numpy().tolist() == [
        ["baseline", 0, 3, 3, 0, "none"], ["baseline", 1, 3, 3, 2, "0; 2"],
        ["pruned", 0, 0, 3, 0, "none"], ["pruned", 1, 1, 3, 1, "1"]]  # fmt: skip


def test_the_best_head_errs_least_by_the_first_step_and_of_equals_it_is_the_first(table: pd.DataFrame) -> None:
    first, second, gone, left = table.to_dict("records")
    assert (first["step"], first["best_head"], first["best_aer"]) == ("output", 1, 0.6)
    assert (second["best_head"], second["best_aer"]) == (0, 0.3)
    beside = {"best_aer_low": 0.29, "best_aer_high": 0.32, "best_precision": 0.33, "best_recall": 0.34, "offset": 1,
              "offset_aer": 0.55, "aer_gain": 0.25, "aer_gain_low": 0.2, "aer_gain_high": 0.3}  # fmt: skip
    assert {name: second[name] for name in beside} == pytest.approx(beside)
    assert (first["other_step"], first["other_head"], first["other_aer"]) == ("input", 2, 0.75)
    assert (second["other_head"], second["other_aer"]) == (1, 0.2)
    assert gone["step"] == "" and np.isnan(gone["best_aer"]) and np.isnan(gone["other_head"])
    assert (left["best_head"], left["best_aer"], left["other_aer"]) == (1, 0.35, 0.5)


def test_a_single_step_leaves_the_columns_of_the_other_empty() -> None:
    both = frames()
    only = both["alignment_heads.tsv"]
    found = alignment_table({**both, "alignment_heads.tsv": only[only["step"] == "input"]})
    assert set(found["step"]) == {"input", ""} and set(found["other_step"]) == {""}
    assert found["best_aer"].tolist()[:2] == [0.75, 0.2] and found["other_aer"].isna().all()


def test_the_table_reads_unpruned_pruned_and_scratch_models_and_the_figure_models_pruned_in_all_attention() -> None:
    assert {*TABLES["alignment"].need.files} == {"baseline", "pruned", "scratch"}
    assert {*FIGURES["alignment_heads"].need.files} == {"baseline", "pruned"}
    assert FIGURES["alignment_heads"].need.scopes == ("all",)


def test_the_figure_shows_every_error_rate_frames_heads_that_align_and_a_line_a_model(tmp_path: Path) -> None:
    runs = write_results(tmp_path / "rich", World(layers=3, heads=4, lams=("0.01", "0.1")))
    loaded = load_runs(FIGURES["alignment_heads"].need, runs)
    rows = loaded["alignment_heads.tsv"].query("step == 'output'")
    baseline = rows[rows["kind"] == "baseline"]
    figure = draw("alignment_heads", loaded)
    heads, layers, bar = figure.axes
    written = {(int(text.get_position()[0]), int(text.get_position()[1])): text.get_text() for text in heads.texts}
    lines = lines_of(layers)
    assert written == {(row.head, row.layer): f"{row.aer:.2f}".replace("0.", ".") for row in baseline.itertuples()}
    framed = {(int(patch.get_x()), int(patch.get_y())) for patch in heads.patches if isinstance(patch, Rectangle)}
    assert framed == {(row.head, row.layer) for row in baseline.itertuples() if row.aligns} == {(0, 1), (2, 1)}
    least = baseline.groupby("layer")["aer"].min()
    assert lines["unpruned"] == [[layer + 1, pytest.approx(rate)] for layer, rate in least.items()]
    of_lam = rows[(rows["kind"] == "pruned") & (rows["lam"] == "0.1")].groupby("layer")["aer"].min()
    assert lines["λ 0.1"] == [[layer + 1, pytest.approx(rate)] for layer, rate in of_lam.items()]
    assert set(lines) == {"unpruned", "control, λ = 0", "λ 0.01", "λ 0.1", "best offset"}
    assert lines["best offset"][0][1] == 0.55 == np.asarray(bar.lines[-1].get_ydata())[0]


FILE = "alignment_heads.tsv"
REFERENCE = load_reference("alignment_claims.csv").set_index("id")
OFFSET = 0.7
RUN = dict.fromkeys(RUN_COLUMNS, "")


def by_layers(*layers: Sequence[float], margin: float = 0.01) -> Frames:
    """Error rates of each layer's heads at the first step; the second step and a pruned model say the opposite.

    Layers are not in order, as in a file that somebody has sorted.
    """
    rows: list[dict[str, Any]] = []
    for kind in ("pruned", "baseline"):
        for step in ("output", "input"):
            turned = kind == "pruned" or step == "input"
            for layer in reversed(range(len(layers))):
                for head, rate in enumerate(layers[layer]):
                    aer = 1 - rate if turned else rate
                    gain = OFFSET - aer
                    rows.append(
                        {**RUN, "kind": kind, "seed": 1, "step": step, "layer": layer, "head": head, "aer": aer,
                         "aer_low": aer - margin, "aer_high": aer + 2 * margin, "gain": gain,
                         "gain_low": gain - 2 * margin, "gain_high": gain + margin}
                    )  # fmt: skip
    return {FILE: frame_of(rows, (*RUN_COLUMNS, *READ_COLUMNS[FILE]))}


def found(claim: str, *layers: Sequence[float], margin: float = 0.01) -> Finding:
    return ALIGNMENT_CLAIMS[claim](by_layers(*layers, margin=margin))


def verdict(claim: str, *layers: Sequence[float], margin: float = 0.01) -> str:
    row = REFERENCE.loc[claim]
    return holds(found(claim, *layers, margin=margin), row["condition"], row["limit"])


def test_every_claim_has_its_function_and_none_has_a_number_of_the_paper() -> None:
    """The paper itself was not read, but what its authors' code and others say of it."""
    assert list(REFERENCE.index) == list(ALIGNMENT_CLAIMS)
    assert REFERENCE["paper"].isna().all() and set(REFERENCE["tag"]) == {"[second-hand]", "[repo]"}


@pytest.mark.parametrize("claim", ALIGNMENT_CLAIMS)
def test_without_a_word_alignment_nothing_is_claimed(claim: str) -> None:
    assert isnan(found(claim).ours) and verdict(claim) == ""


def test_the_best_head_of_all_is_held_against_the_best_offset() -> None:
    best = found("heads_align", [0.9, 0.65], [0.6, 0.8])
    assert (best.ours, best.low, best.high) == pytest.approx((0.1, 0.08, 0.11))
    assert verdict("heads_align", [0.9, 0.65], [0.6, 0.8]) == "yes"
    assert verdict("heads_align", [0.9, 0.69]) == "unclear" and verdict("heads_align", [0.8, 0.75]) == "no"


def test_the_upper_half_is_held_against_the_lower_without_the_layer_between() -> None:
    late = found("aligned_late", [0.6, 0.9], [0.5], [0.1], [0.4, 0.8], [0.7])
    assert (late.ours, late.low, late.high) == pytest.approx((0.1, 0.07, 0.13))
    assert verdict("aligned_late", [0.6], [0.5], [0.4], [0.7]) == "yes"
    assert verdict("aligned_late", [0.4], [0.8], [0.7], [0.6]) == "no"
    assert verdict("aligned_late", [0.42], [0.41]) == "unclear" and verdict("aligned_late", [0.3]) == ""


def test_layers_better_than_the_last_but_one_are_counted_with_those_that_may_be() -> None:
    counted = found("last_but_one", [0.5], [0.305, 0.9], [0.2], [0.6], [0.3, 0.7], [0.31])
    assert (counted.ours, counted.of, counted.low, counted.high) == (1, 5, 1, 3)
    assert counted.chance == pytest.approx(1 / 6)
    assert verdict("last_but_one", [0.5], [0.2], [0.3], [0.6]) == "no"
    assert verdict("last_but_one", [0.5], [0.6], [0.3], [0.32]) == "unclear"
    assert verdict("last_but_one", [0.5], [0.6], [0.3], [0.4]) == TOO_FEW
    assert verdict("last_but_one", *([0.9],) * 19, [0.3], [0.4]) == "yes" and verdict("last_but_one", [0.3]) == ""

"""Tables and the figure of roles: several roles of a head, drift, several sources of trees, scratch, and dynamics."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from drawn_figures import draw
from heads.base.names import HALVES
from heads.figures.style import FUNCTION_COLOURS
from heads.tables.reading import Frames, load_reference
from heads.tables.roles import (
    count_functions,
    dependencies_table,
    dynamics_table,
    head_functions,
    role_drift,
    roles_table,
)
from made_evidence import run_of

BASELINE, PRUNED, SCRATCH = (("baseline", "", ""), ("pruned", "all", "0.1"), ("scratch", "all", "0.1"))
Model = tuple[str, str, str]
Held = dict[tuple[int, int], list[str]]
FIGURE8 = load_reference("voita_figure8_functions.csv")


def role_of(name: str) -> str:
    return "positional" if name[0] in "+-0" else "rare" if " of " in name else "syntactic"


def frames(
    held: dict[Model, Held], trees: tuple[str, ...] = ("gold",), second: dict[Model, Held] | None = None
) -> Frames:
    """Models of two layers of two heads; `held` says what each live head holds on the first trees, `second` on others.

    Besides what it holds, the second head of a layer reaches the offset 0.
    """
    models: list[dict[str, Any]] = []
    roles: list[dict[str, Any]] = []
    alignment: list[dict[str, Any]] = []
    for model, heads in held.items():
        run = run_of(model)
        places = [(layer, head) for layer in range(2) for head in range(2)]
        models += [
            {**run, "attention": "enc_self", "layer": layer, "head": head, "live": int((layer, head) in heads)}
            for layer, head in places
        ]
        for number, source in enumerate(trees):
            counts = {"sentences": 9, "measured": 8, "tree_words": 2000 + number, "aligned_words": 1999}
            alignment.append({**run, "trees": source, **counts})
            for (layer, head), names in heads.items():
                others = (second or {}).get(model, {}).get((layer, head), [])
                for name in dict.fromkeys(["0", "obj dependent-to-head", *names, *others]):
                    holds = int(name in (others if number else names))
                    row = {"layer": layer, "head": head, "role": role_of(name), "name": name, "cases": 9}
                    row |= {"accuracy": (layer + 1) / 4, "low": 0.2, "high": 0.9, "baseline": 0.25, "excess_low": 0.3}
                    row |= dict.fromkeys(HALVES, math.nan)
                    row |= {"excess_high": 0.4, "holds": holds, "reaches": int(holds or (name == "0" and head == 1))}
                    roles.append({**run, "trees": source, **row})
    found = {"model.json": models, "roles.tsv": roles, "coverage.tsv": alignment}
    return {name: pd.DataFrame(rows) for name, rows in found.items()}


OBJ, AMOD, RARE = "obj dependent-to-head", "amod head-to-dependent", "one of two rarest"
DRIFT: dict[Model, Held] = {
    BASELINE: {(0, 0): [RARE], (0, 1): ["-1"], (1, 0): [OBJ, AMOD], (1, 1): []},
    PRUNED: {(0, 1): ["-1", AMOD], (1, 0): [OBJ]},
    SCRATCH: {(0, 0): ["+1"], (1, 1): [OBJ]},
}


def test_a_head_names_all_that_it_holds_and_has_one_function() -> None:
    heads = head_functions(frames(DRIFT)).set_index(["kind", "layer", "head"])
    assert heads.loc[("baseline", 1, 0), ["function", "roles", "held"]].tolist() == ["syntactic", f"{OBJ}; {AMOD}", 2]
    assert heads.loc[("baseline", 1, 1), ["function", "roles", "held"]].tolist() == ["other", "none", 0]
    assert heads.loc[("pruned", 0, 1), "function"] == "positional_and_syntactic"
    assert heads["reaching"].tolist() == [1, 1, 1, 1, 1, 1, 1, 1]


def test_drift_follows_each_head_of_the_unpruned_model() -> None:
    drift = role_drift(frames(DRIFT)).set_index(["layer", "head"])
    assert set(drift["kind"]) == {"pruned"}
    assert drift.loc[(0, 0), ["gone", "roles_before", "roles_after", "lost_roles"]].tolist() == [1, RARE, "", 1]
    columns = ["gone", "function_before", "function_after", "new_roles", "lost_roles"]
    assert drift.loc[(0, 1), columns].tolist() == [0, "positional", "positional_and_syntactic", 1, 0]
    assert drift.loc[(1, 0), columns].tolist() == [0, "syntactic", "syntactic", 0, 1]
    assert drift.loc[(1, 1), "gone"] == 1


def test_the_papers_model_beside_ours_is_the_nearest_by_share_of_heads() -> None:
    """Of 48 heads the paper kept 30, 17, 14, 11 and fewer: half of ours is nearest to 30, a quarter to 11."""
    one = {BASELINE: DRIFT[BASELINE], PRUNED: DRIFT[PRUNED], SCRATCH: {(0, 0): ["+1"]}}
    assert roles_table(frames(one), FIGURE8)["paper_live"].tolist() == [48, 30, 11]


def test_heads_that_would_be_positional_by_words_are_counted_beside_those_that_are() -> None:
    """Head 1, 1 looks at two offsets in words, head 0, 0 surely at none, head 0, 1 at one on the second trees only."""
    some = frames(DRIFT, ("gold", "stanza"))
    roles = some["roles.tsv"]
    on_words = [("gold", 1, 1, 0.0), ("gold", 1, 1, 0.05), ("gold", 0, 0, -0.01), ("stanza", 0, 1, 0.05)]
    rows = roles[roles["kind"] == "baseline"].iloc[[0] * 4].copy()
    rows[["trees", "layer", "head", "excess_low"]] = on_words
    rows = rows.assign(role="positional_words", name=["-1", "0", "-1", "-1"], reaches=0, holds=0)
    some["roles.tsv"] = pd.concat([roles, rows], ignore_index=True).sort_values("trees", kind="stable")
    table = roles_table(some, FIGURE8).set_index("kind")
    assert table["positional_on_words"].to_dict() == {"baseline": 1, "pruned": 0, "scratch": 0}
    assert table["positional"].to_dict() == {"baseline": 1, "pruned": 0, "scratch": 1}
    assert table.loc["scratch", ["live", "syntactic"]].tolist() == [2, 1]
    assert table.loc[["baseline", "scratch"], "heads_with_new_roles"].isna().all()


def test_positional_heads_have_their_mean_accuracy_by_halves_each_at_its_best_offset_on_the_first_trees() -> None:
    some = frames({BASELINE: {(0, 0): ["-1"], (1, 0): ["-1", "+1"], (1, 1): [OBJ]}, SCRATCH: {(0, 0): [RARE]}})
    roles = some["roles.tsv"]
    numbers = {(0, "-1"): (0.92, 0.8, 0.3), (1, "-1"): (0.94, 0.1, 0.2), (1, "+1"): (0.98, 0.6, 0.5)}
    for (layer, name), (accuracy, by_bias, by_content) in numbers.items():
        own = (roles["kind"] == "baseline") & (roles["layer"] == layer) & (roles["head"] == 0) & (roles["name"] == name)
        roles.loc[own, ["accuracy", "by_bias", "by_content"]] = [accuracy, by_bias, by_content]
    roles.loc[roles["name"] == "0", ["accuracy", "by_bias", "by_content"]] = 1.0  # held by none
    table = roles_table(some, FIGURE8).set_index("kind")
    columns = [f"positional_percent{half}" for half in ("", "_by_bias", "_by_content")]
    assert table.loc["baseline", columns].tolist() == pytest.approx([95, 70, 40])
    assert table.loc["scratch", columns].isna().all()
    without = roles_table(frames(DRIFT), FIGURE8).set_index("kind").loc["baseline", columns]
    assert without.iloc[0] == pytest.approx(25) and without.iloc[1:].isna().all()


def test_the_verdict_of_the_second_trees_stands_beside_that_of_the_first() -> None:
    table = roles_table(frames(DRIFT, ("gold", "stanza")), FIGURE8).set_index("kind")
    first = roles_table(frames(DRIFT), FIGURE8).set_index("kind")
    ours = list(first.columns[: list(first.columns).index("other_trees")])
    pd.testing.assert_frame_equal(table[ours], first[ours])
    assert first["other_trees"].isna().all()


def test_without_trees_no_number_of_syntactic_heads_is_zero_but_missing_and_other_experiments_have_theirs() -> None:
    treed, untreed = frames(DRIFT), frames(DRIFT, ("text",))
    untreed["roles.tsv"] = untreed["roles.tsv"].query("role != 'syntactic'")
    both = {name: pd.concat([treed[name], untreed[name].assign(experiment="mine")]) for name in treed}
    table = roles_table(both, FIGURE8).set_index(["experiment", "kind"])
    ours, [theirs] = table.loc["mine"], {*table.index.get_level_values(0)} - {"mine"}
    assert ours[["syntactic", "positional_and_syntactic"]].isna().all(axis=None)
    assert ours[["positional", "rare", "other"]].to_numpy().tolist() == [[1, 1, 2], [1, 0, 1], [1, 0, 1]]
    assert table.loc[theirs, ["syntactic", "positional_and_syntactic"]].to_numpy().tolist() == [[1, 0], [1, 1], [1, 0]]
    assert {*ours["trees"]} == {"text"}


@pytest.mark.parametrize("trees", [("own", "gold", "stanza"), ("gold", "stanza", "own")])
def test_third_trees_change_nothing_in_a_table_but_stand_in_the_files_alone(trees: tuple[str, ...]) -> None:
    """They hold and reach everything, best of all."""
    two, three = frames(DRIFT, trees[:2]), frames(DRIFT, trees)
    third = three["roles.tsv"]["trees"] == trees[2]
    assert third.sum() > 9
    three["roles.tsv"].loc[third, ["accuracy", "holds", "reaches"]] = [0.99, 1, 1]
    pd.testing.assert_frame_equal(roles_table(three, FIGURE8), roles_table(two, FIGURE8))
    baselines = [{name: one[one["kind"] == "baseline"] for name, one in some.items()} for some in (three, two)]
    found, expected = (dependencies_table(some, load_reference("voita_table1_dependencies.csv")) for some in baselines)
    pd.testing.assert_frame_equal(found, expected)
    assert {*expected["other_trees"]} == {trees[1]}


def test_what_a_head_holds_or_reaches_on_second_trees_alone_is_not_its_function() -> None:
    some = frames({BASELINE: {(0, 0): [], (1, 1): [OBJ]}}, ("gold", "stanza"))
    roles = some["roles.tsv"]
    roles.loc[(roles["trees"] == "stanza") & (roles["name"] == "0"), ["holds", "reaches"]] = 1
    columns = ["function", "roles", "held", "reaching"]
    assert head_functions(some)[columns].to_numpy().tolist() == [["other", "none", 0, 0], ["syntactic", OBJ, 1, 1]]


def test_the_order_of_the_trees_decides_and_not_their_name() -> None:
    assert count_functions(frames(DRIFT, ("stanza", "gold")))["several"].tolist() == [1, 1, 0]


def test_every_count_of_roles_stands_in_its_own_column() -> None:
    """One word of two thousand is not aligned: that is never rounded away."""
    held = {BASELINE: DRIFT[BASELINE], PRUNED: {(0, 1): ["-1", AMOD], (1, 0): [OBJ, "+1"], (1, 1): []}}
    second = {BASELINE: {(0, 1): ["-1"]}, PRUNED: {(0, 1): [OBJ], (1, 0): [OBJ]}}
    table = roles_table(frames(held, ("gold", "stanza"), second), FIGURE8).set_index("kind")
    counts = ["live", "of", "positional", "positional_and_syntactic", "syntactic", "rare", "other"]
    assert table.loc["baseline", counts].tolist() == [4, 4, 1, 0, 1, 1, 1]
    assert table.loc["pruned", counts].tolist() == [3, 4, 0, 2, 0, 0, 1]
    assert table.loc["pruned", ["several", "reaching"]].tolist() == [2, 3]
    assert table.loc["pruned", ["heads_with_new_roles", "heads_with_lost_roles"]].tolist() == [2, 1]
    assert table.loc["pruned", ["trees", "tree_words", "aligned_words", "aligned_percent"]].tolist() == [
        "gold", 2000, 1999, 99.9]  # fmt: skip
    others = [f"other_{name}" for name in ("trees", *counts[2:])]
    assert table.loc["pruned", others].tolist() == ["stanza", 0, 0, 2, 0, 1]
    # Three of four heads: thirty of the paper's forty-eight are nearest.
    paper = ["paper_corpus", "paper_live", "paper_of", *(f"paper_{name}" for name in counts[2:])]
    assert table.loc["pruned", paper].tolist() == ["OpenSubtitles", 30, 48, 4, 0, 7, 1, 18]
    assert table.loc["baseline", paper].tolist() == ["OpenSubtitles", 48, 48, 5, 0, 8, 1, 34]


def test_every_number_of_a_relation_stands_in_its_own_column() -> None:
    rows = []
    for trees, shift in (("gold", 0.0), ("stanza", 0.02)):
        for head, accuracy in enumerate((0.5, 0.7, 0.6)):
            facts = {"accuracy": accuracy + shift * (8 * head - 10), "low": 0.1 + accuracy, "high": 0.2 + accuracy,
                     "baseline": 0.3 + 2 * shift, "cases": 40 + int(100 * shift), "reaches": 1, "holds": 0}  # fmt: skip
            measure = {"trees": trees, "role": "syntactic", "name": "obj head-to-dependent"}
            rows.append({**run_of(BASELINE), "layer": 2, "head": head, **measure, **facts})
    counts = {"aligned_words": 7, "sentences": 1, "measured": 1}
    alignment = [{**run_of(BASELINE), "trees": t, "tree_words": n, **counts} for t, n in (("gold", 8), ("stanza", 9))]
    frames = {"roles.tsv": pd.DataFrame(rows), "coverage.tsv": pd.DataFrame(alignment)}
    row = dependencies_table(frames, load_reference("voita_table1_dependencies.csv")).iloc[0]
    expected: dict[str, Any] = {"relation": "obj", "direction": "head-to-dependent", "trees": "gold",
                "layer": 2, "head": 1, "cases": 40, "best_percent": 70, "low_percent": 80, "high_percent": 90,
                "baseline_percent": 30, "gain_points": 40,
                "reaches": 1, "holds": 0, "other_trees": "stanza", "other_cases": 42, "other_best_percent": 72,
                "other_baseline_percent": 34, "other_gain_points": 38, "other_same_head_percent": 66, "tree_words": 8,
                "aligned_words": 7, "aligned_percent": 87.5, "paper_relation": "dobj verb->obj",
                "paper_wmt_best_percent": 78, "paper_wmt_baseline_percent": 41, "paper_opensubtitles_best_percent": 61,
                "paper_opensubtitles_baseline_percent": 46, "paper_tag": "[second-hand]"}  # fmt: skip
    for name, value in expected.items():
        assert row[name] == (value if isinstance(value, str) else pytest.approx(value)), name


def test_the_figure_has_a_box_a_head_hatched_where_a_role_is_new_and_dotted_where_there_are_several() -> None:
    _, _, pruned, scratch = draw("functions_retained", frames(DRIFT)).axes
    boxes, others = ([patch for patch in axes.patches if isinstance(patch, Rectangle)] for axes in (pruned, scratch))
    colours = [to_hex(box.get_facecolor()) for box in boxes[4:]]
    assert colours == [FUNCTION_COLOURS[name].lower() for name in ("positional_and_syntactic", "syntactic")]
    assert [bool(box.get_hatch()) for box in boxes] == [False] * 4 + [True, False]
    assert [bool(box.get_hatch()) for box in others] == [False, False]
    assert sorted(tuple(np.ravel(line.get_xydata())) for line in pruned.lines) == [(0, 1.5), (1, 0.5)]


COLUMNS = ["update", "finished", "layer", "head", "role", "name", "accuracy", "low", "high", "baseline"]
NONE = float("nan")


def made(*rows: tuple[object, ...], seed: int = 1) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS).assign(experiment="e", seed=seed)


def course(role: str, name: str, *shares: tuple[int, float, float], baseline: float = NONE) -> list[tuple[object, ...]]:
    """The shares of heads 0.0 and 1.2 at each update; the last is the finished model."""
    last = shares[-1][0]
    return [
        (update, int(update == last), *place, role, name, share, share - 0.03, share + 0.01, baseline)
        for update, *both in shares
        for place, share in zip(((0, 0), (1, 2)), both, strict=True)
    ]


def test_the_best_head_stands_at_each_checkpoint_and_what_it_gained_since_the_last_one_of_the_first_half() -> None:
    shares = (5, 0.1, 0.2), (20, 0.35, 0.3), (21, 0.4, 0.1), (40, 0.2, 0.6)
    relation = course("syntactic", "obj head-to-dependent", *shares, baseline=0.25)
    rows = dynamics_table({"dynamics.tsv": made(*relation)}).to_dict("records")
    assert [(row["update"], row["layer"], row["head"], row["accuracy"]) for row in rows] == [
        (5, 1, 2, 0.2), (20, 0, 0, 0.35), (21, 0, 0, 0.4), (40, 1, 2, 0.6),
    ]  # fmt: skip
    assert [row["above_baseline"] for row in rows] == pytest.approx([-0.05, 0.1, 0.15, 0.35])
    assert all(math.isnan(row["gained"]) for row in rows[:3])
    assert rows[3]["gained"] == pytest.approx(0.6 - 0.35)
    assert (rows[3]["low"], rows[3]["high"]) == pytest.approx((0.57, 0.61))


def test_of_all_offsets_the_best_counts_and_of_confidence_the_best_head_and_the_mean() -> None:
    rows = course("positional", "-1", (4, 0.1, 0.3), (8, 0.5, 0.2)) + course(
        "positional", "+2", (4, 0.2, 0.1), (8, 0.4, 0.6)
    )
    rows += course("confidence", "", (4, 0.2, 0.4), (8, 0.9, 0.3)) + course(
        "rare", "rarest", (4, 0.9, 0.9), (8, 0.9, 0.9)
    )
    rows += course("rare", "one of two rarest", (4, 0.1, 0.0), (8, 0.2, 0.7))
    table = dynamics_table({"dynamics.tsv": made(*rows)})
    found = {(r["role"], r["name"], r["update"]): r["accuracy"] for r in table.to_dict("records")}
    assert found == pytest.approx({
        ("positional", "any offset", 4): 0.3, ("positional", "any offset", 8): 0.6,
        ("confidence", "", 4): 0.4, ("confidence", "", 8): 0.9,
        ("confidence", "mean", 4): 0.3, ("confidence", "mean", 8): 0.6,
        ("rare", "one of two rarest", 4): 0.1, ("rare", "one of two rarest", 8): 0.7,
    })  # fmt: skip
    gained = table[table["finished"] == 1].set_index(["role", "name"])["gained"]
    assert gained.to_dict() == pytest.approx({
        ("positional", "any offset"): 0.3, ("confidence", ""): 0.5, ("confidence", "mean"): 0.3,
        ("rare", "one of two rarest"): 0.6,
    })  # fmt: skip


def test_seeds_are_told_apart_and_without_a_checkpoint_in_the_first_half_nothing_was_gained() -> None:
    one = made(*course("positional", "-1", (30, 0.1, 0.3), (40, 0.5, 0.2)))
    other = made(*course("positional", "-1", (20, 0.6, 0.3), (40, 0.7, 0.2)), seed=2)
    table = dynamics_table({"dynamics.tsv": pd.concat([one, other])})
    end = table[table["finished"] == 1].set_index("seed")
    assert end["accuracy"].to_dict() == {1: 0.5, 2: 0.7}
    assert math.isnan(end["gained"][1]) and end["gained"][2] == pytest.approx(0.1)


def test_a_relation_without_cases_has_no_row() -> None:
    rows = course("syntactic", "nsubj head-to-dependent", (4, NONE, NONE), (8, NONE, NONE), baseline=NONE)
    table = dynamics_table({"dynamics.tsv": made(*rows, *course("positional", "0", (4, 0.1, 0.2), (8, 0.1, 0.2)))})
    assert set(table["role"]) == {"positional"}

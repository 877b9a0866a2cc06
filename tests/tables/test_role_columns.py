"""Every column of the tables of roles, relations and speed, on frames in which each neighbour of a number differs."""

from __future__ import annotations

from itertools import product
from typing import Any

import pandas as pd
import pytest

from heads.tables.reading import RUN_COLUMNS, Frames, load_reference
from heads.tables.roles import dependencies_table, roles_table
from heads.tables.speed import speed_table

BASELINE, PRUNED = ("baseline", "", "", ""), ("pruned", "all", "0.1", "")


def run(kind: str, scope: str, lam: str, keep: str) -> dict[str, Any]:
    return dict(zip(RUN_COLUMNS, ("x", kind, scope, "", lam, keep, 1), strict=True))


OBJ, AMOD, RARE = "obj dependent-to-head", "amod head-to-dependent", "one of two rarest"


def role_frames() -> Frames:
    """Heads of one layer by their roles on two sets of trees; pruning gives two heads new roles and one loses one."""
    held = {
        BASELINE: {0: [RARE], 1: ["-1"], 2: [OBJ, AMOD], 3: [], 4: []},
        PRUNED: {1: ["-1", AMOD], 2: [OBJ], 3: ["+1"]},
    }
    second = {BASELINE: {1: ["-1"]}, PRUNED: {1: [OBJ], 2: [OBJ]}}
    model, roles, alignment = [], [], []
    for model_run, heads in held.items():
        one = run(*model_run)
        model += [{**one, "attention": "enc_self", "layer": 0, "head": h, "live": int(h in heads)} for h in range(5)]
        for trees, words in (("gold", 1000), ("stanza", 2000)):
            alignment.append({**one, "trees": trees, "sentences": 9, "measured": 8, "tree_words": words,
                              "aligned_words": words - 3})  # fmt: skip
            names = heads if trees == "gold" else second[model_run]
            for head, name in product(heads, ("-1", "+1", OBJ, AMOD, RARE)):
                role = "positional" if name[0] in "+-" else "rare" if name == RARE else "syntactic"
                roles.append({**one, "trees": trees, "layer": 0, "head": head, "role": role, "name": name, "cases": 9,
                              "excess_low": -0.1, "holds": int(name in names.get(head, ())),
                              "reaches": int(head == 3)})  # fmt: skip
            for head in heads:  # by offsets in words two heads would be positional, of which pruning leaves one
                roles.append({**roles[-1], "head": head, "role": "positional_words", "name": "-1", "holds": 0,
                              "reaches": 0, "excess_low": 0.0 if head in (2, 4) else -0.1})  # fmt: skip
    return {
        "model.json": pd.DataFrame(model),
        "roles.tsv": pd.DataFrame(roles),
        "alignment.tsv": pd.DataFrame(alignment),
    }


def test_every_count_of_roles_stands_in_its_own_column() -> None:
    table = roles_table(role_frames(), load_reference("voita_figure8_functions.csv")).set_index("kind")
    counts = ["live", "of", "positional", "positional_and_syntactic", "syntactic", "rare", "other"]
    assert table.loc["baseline", counts].tolist() == [5, 5, 1, 0, 1, 1, 2]
    assert table.loc["pruned", counts].tolist() == [3, 5, 1, 1, 1, 0, 0]
    assert table.loc["pruned", ["several", "reaching"]].tolist() == [1, 1]
    assert table["positional_on_words"].to_dict() == {"baseline": 2, "pruned": 1}
    assert table.loc["pruned", ["heads_with_new_roles", "heads_with_lost_roles"]].tolist() == [2, 1]
    assert table.loc["pruned", ["trees", "tree_words", "aligned_words", "aligned_percent"]].tolist() == [
        "gold", 1000, 997, 99.7]  # fmt: skip
    others = [f"other_{name}" for name in ("trees", *counts[2:])]
    assert table.loc["pruned", others].tolist() == ["stanza", 0, 0, 2, 0, 1]
    # Three of five heads: thirty of the paper's forty-eight are nearest.
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
            rows.append({**run(*BASELINE), "layer": 2, "head": head, **measure, **facts})
    counts = {"aligned_words": 7, "sentences": 1, "measured": 1}
    alignment = [{**run(*BASELINE), "trees": t, "tree_words": n, **counts} for t, n in (("gold", 8), ("stanza", 9))]
    frames = {"roles.tsv": pd.DataFrame(rows), "alignment.tsv": pd.DataFrame(alignment)}
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


def test_speed_is_a_gain_in_percent_with_the_papers_row_of_that_size() -> None:
    facts = dict.fromkeys(
        ("sentences", "subwords_per_example", "parameters", "disk_mb", "peak_memory_mb", "repeats"), 1.0
    )
    timed = [
        {**run(*BASELINE), "run": name, "batch_sentences": size, "examples_per_second": 10.0 * size,
         "heads": 5, "of": 9,
         "examples_per_second_sd": 0.5, "ratio": ratio, "ratio_low": ratio - 0.25, "ratio_high": ratio + 0.5,
         "device": "CPU", **facts}
        for name, ratio in (("baseline/seed-1", 1.0), ("pruned/enc_self/lam-0.2/seed-1", 0.75))
        for size in (16, 2)
    ]  # fmt: skip
    frames = {"speed.tsv": pd.DataFrame(timed)}
    table = speed_table(frames, load_reference("michel_table4_speed.csv")).set_index(["kind", "batch_sentences"])
    row = table.loc["pruned", 16]
    assert row[["scope", "lam", "keep", "heads", "of"]].tolist() == ["enc_self", "0.2", "", 5, 9]
    assert row[["faster_percent", "faster_percent_low", "faster_percent_high"]].tolist() == [-25, -50, 25]
    paper = ["paper_model", "paper_examples_per_second", "paper_examples_per_second_spread", "paper_faster_percent"]
    assert row[paper].tolist() == ["BERT on MNLI, GTX 1080Ti, 50% of heads removed", 134, 3.6, 17.5]
    assert table.loc["baseline", 16][paper[1:3]].tolist() == [114, 3.6]
    assert table.loc["pruned", 2][paper].isna().all()

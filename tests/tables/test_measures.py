"""Measures of heads and their correlations, against definitions written slowly."""

from itertools import permutations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fake_results import World, table_of, take_trees, write_results
from heads.base.files import read_tsv
from heads.base.names import SCOPES
from heads.tables.catalogue import TABLES
from heads.tables.measures import correlate, rank_correlation
from made_evidence import heads_frame


def slow_ranks(values: list[float]) -> list[float]:
    """Ranks: one plus the number of smaller values, plus half the number of other equal ones."""
    return [1 + sum(b < a for b in values) + (sum(b == a for b in values) - 1) / 2 for a in values]


def test_the_correlation_of_one_block_is_that_of_ranks_with_ties_shared() -> None:
    a, b = [0.3, 0.1, 0.1, 0.9, 0.5], [2.0, 1.0, 7.0, 7.0, 3.0]
    expected = np.corrcoef(slow_ranks(a), slow_ranks(b))[0, 1]
    assert rank_correlation(a, b, np.zeros(5, int))[0] == pytest.approx(expected)


def test_the_correlation_within_blocks_does_not_see_what_differs_between_them() -> None:
    """Two layers, interleaved, with opposite levels; in each of them the two measures rise together."""
    layers = np.array([0, 1, 0, 1, 0, 1])
    a = np.array([1.0, 11.0, 2.0, 12.0, 3.0, 13.0])
    b = np.array([31.0, 1.0, 32.0, 2.0, 33.0, 3.0])
    assert rank_correlation(a, b, layers)[0] == pytest.approx(1)
    assert rank_correlation(a, b, np.zeros(6, int))[0] < 0


def test_the_p_value_is_near_that_of_all_orders_within_blocks() -> None:
    a, b, blocks = [3.0, 1.0, 2.0, 6.0, 9.0, 7.0, 8.0], [2.0, 1.0, 3.0, 5.0, 7.0, 6.0, 4.0], [0, 0, 0, 1, 1, 1, 1]
    x = np.array(slow_ranks(a[:3]) + slow_ranks(a[3:])) - np.array([2.0] * 3 + [2.5] * 4)
    y = np.array(slow_ranks(b[:3]) + slow_ranks(b[3:])) - np.array([2.0] * 3 + [2.5] * 4)
    every = [abs(np.array(p + q) @ x) for p, q in product(permutations(y[:3]), permutations(y[3:]))]
    exact = np.mean([value >= abs(x @ y) - 1e-9 for value in every])
    assert rank_correlation(a, b, np.array(blocks))[1] == pytest.approx(exact, abs=0.04)


def test_a_constant_measure_has_no_correlation() -> None:
    assert all(np.isnan(rank_correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], np.zeros(3, int))))


def test_pairs_that_only_one_kind_of_attention_has_are_not_repeated_for_all() -> None:
    heads = heads_frame([[1, 2, 3, 4]], [[1, 3, 2, 4]]).assign(roles=[1.0, 2.0, 4.0, 3.0])
    both = pd.concat([heads, heads.assign(attention="dec_enc", roles=np.nan)], ignore_index=True)
    assert len(correlate(heads, ["lrp", "confidence", "roles"])) == 3
    (row,) = correlate(both, ["lrp", "confidence", "roles"])
    assert (row["measure_a"], row["measure_b"], row["heads"], row["layers"]) == ("lrp", "confidence", 8, 2)


def test_gates_driven_to_numbers_of_heads_survive_as_those_under_penalties(tmp_path: Path) -> None:
    found = {}
    for driven in (False, True):
        world = World(layers=3, heads=4, lams=("0.003", "0.03", "0.1"), scratch=False, driven=driven)
        runs = write_results(tmp_path / f"driven-{driven}", world)
        found[driven] = table_of("measures", runs)
    for scope in SCOPES:
        survived = {driven: [row[f"gate_survival_{scope}"] for row in rows] for driven, rows in found.items()}
        assert survived[False] == survived[True] and len({*survived[True]}) > 2
    assert "gate_fewest_heads_all" not in found[False][0]
    assert {row["gate_last_lambda_all"] for row in found[True]} == {""}
    files = [read_tsv(path) for path in tmp_path.glob("driven-True/gates/all/keep-*/seed-1/heads.tsv")]
    assert len(files) == 3
    for row in found[True]:
        place = {name: row[name] for name in ("attention", "layer", "head")}
        stays = [own for own in files if next(r["open"] for r in own if place.items() <= r.items()) == "1"]
        fewest = min((sum(r["open"] == "1" for r in own) for own in stays), default=36)
        assert float(row["gate_fewest_heads_all"]) == fewest, place
    told = {row["gate_fewest_heads_all"] for row in found[True]}
    assert "36" in told, "a head that every number of heads cuts"
    assert {row["gate_fewest_heads_enc_self"] for row in found[True] if row["attention"] != "enc_self"} == {""}
    rows = table_of("correlations", runs)
    names = {row[side] for row in rows for side in ("measure_a", "measure_b")}
    assert "gate_survival_all" in names and "gate_fewest_heads_all" not in names


def test_without_trees_all_but_the_roles_is_measured(tmp_path: Path) -> None:
    runs = write_results(tmp_path / "treeless", World(lams=("0.1",), scratch=False))
    for path in runs:
        (path / "roles.tsv").unlink(missing_ok=True)
    need = TABLES["measures"].need
    assert not any("roles" in path for path in need.inputs([str(run) for run in runs], need.optional))
    rows = table_of("measures", runs)
    assert {row["syntactic_gain"] for row in rows} == {""} and all(row["confidence"] for row in rows)
    held = {row["measure"]: row["holds"] for row in table_of("claims", runs)}
    assert not next(holds for measure, holds in held.items() if measure.startswith("syntactic heads"))
    assert next(said for measure, said in held.items() if measure.startswith("models that keep a smaller share of the"))


ON_SYNTAX = (
    *("Some encoder heads are syntactic", "Heads find syntactic partners better than a fixed offset"),
    *("Several heads can find the same relation", "Syntactic heads are relevant", "Specialised heads are pruned last"),
    "All functions are still there with a third of the encoder heads",
)
"""Claims that are about syntactic roles, or about having none of all roles."""


@pytest.mark.slow
def test_on_sentences_without_trees_all_but_what_depends_on_syntactic_roles_is_measured_as_before(
    tmp_path: Path,
) -> None:
    runs = write_results(tmp_path / "treeless", World(layers=2, heads=3, lams=("0.1",), scratch=False))
    tables = ("claims", "measures", "roles", "role_drift", "dynamics")
    treed = {name: table_of(name, runs) for name in tables}
    take_trees(runs)
    untreed = {name: table_of(name, runs) for name in tables}
    assert {row["syntactic_gain"] for row in untreed["measures"]} == {""}
    assert untreed["measures"] == [row | {"syntactic_gain": ""} for row in treed["measures"]]
    assert untreed["dynamics"] == [row for row in treed["dynamics"] if row["role"] != "syntactic"]
    assert {row["syntactic"] for row in untreed["roles"]} == {""} and len(untreed["role_drift"]) == len(
        treed["role_drift"]
    )
    changed = [
        (was["claim"], row["ours"]) for was, row in zip(treed["claims"], untreed["claims"], strict=True) if was != row
    ]
    assert {*changed} == {(claim, "") for claim in ON_SYNTAX}

"""Measures of heads, their correlations and the paper's claims, against definitions written slowly and maps by hand."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fake_results import RULES, World, write_results
from heads.__main__ import main
from heads.files import read_tsv
from heads.names import ATTENTIONS
from heads.tables import claims
from heads.tables.claims import Evidence
from heads.tables.correlations import correlate, rank_correlation
from heads.tables.needs import NEEDS
from heads.tables.reading import load_reference, load_runs
from heads.tables.verdicts import Finding, holds

WORLD = World(layers=3, heads=4, lams=("0.01", "0.1"), seeds=(1, 2))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_results(tmp_path_factory.mktemp("results") / "first", WORLD)


def table(name: str, runs: list[Path], out: Path) -> list[dict[str, str]]:
    assert main(["table", "--name", name, "--runs", *map(str, runs), "--out", str(out)]) == 0
    return read_tsv(out)


def slow_ranks(values: list[float]) -> list[float]:
    """One plus the values below, plus half of the other equal ones."""
    return [1 + sum(b < a for b in values) + (sum(b == a for b in values) - 1) / 2 for a in values]


def heads_frame(relevance: list[list[float]], confidence: list[list[float]]) -> pd.DataFrame:
    """Encoder heads of a layer a list."""
    rows = [
        {"attention": "enc_self", "layer": layer, "head": head, "lrp": value, "confidence": confidence[layer][head]}
        for layer, values in enumerate(relevance)
        for head, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def evidence(
    heads: pd.DataFrame | None = None,
    runs: pd.DataFrame | None = None,
    functions: str = "",
    without_cases: str = "",
) -> Evidence:
    """functions: a letter a head of a single layer of a baseline: p, s, b(oth), r, o. without_cases: a role."""
    names = {"p": "positional", "s": "syntactic", "b": "positional_and_syntactic", "r": "rare", "o": "other"}
    found = [
        {"kind": "baseline", "layer": k // 3, "head": k % 3, "function": names[f]} for k, f in enumerate(functions)
    ]
    empty = pd.DataFrame()
    made = pd.DataFrame(found, columns=["kind", "layer", "head", "function"])
    cases = [{"kind": "baseline", "role": role, "cases": 9 * (role != without_cases)} for role in claims.FUNCTIONS]
    roles = pd.DataFrame(cases)
    return Evidence(empty if heads is None else heads, empty if runs is None else runs, empty, made, roles)


def swept(*rows: tuple[str, str, str, float, float, float | None]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["kind", "scope", "lam", "share", "bleu", "bleu_scratch"])


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


def test_the_measures_of_a_head_are_those_of_its_files(runs: list[Path], tmp_path: Path) -> None:
    rows = table("measures", runs, tmp_path / "t.tsv")
    assert len(rows) == 2 * 3 * 3 * 4
    row = next(r for r in rows if (r["seed"], r["attention"], r["layer"], r["head"]) == ("2", "enc_self", "1", "3"))
    baseline, head = runs[0].parent / "seed-2", {"attention": "enc_self", "layer": "1", "head": "3"}
    for rule, found in zip(
        RULES, [r for r in read_tsv(baseline / "lrp.tsv") if head.items() <= r.items()], strict=True
    ):
        assert float(row[f"lrp_{rule}"]) == pytest.approx(float(found["relevance_absolute"]), abs=1e-4)
        assert float(row[f"lrp_{rule}_signed"]) == pytest.approx(float(found["relevance"]), abs=1e-4)
    roles = [r for r in read_tsv(baseline / "roles.tsv") if (r["layer"], r["head"]) == ("1", "3")]
    gain = max(float(r["accuracy"]) - float(r["baseline"]) for r in roles if r["role"] == "syntactic")
    offset = max(float(r["accuracy"]) for r in roles if r["role"] == "positional")
    assert [float(row[c]) for c in ("syntactic_gain", "positional_accuracy")] == pytest.approx([gain, offset], abs=1e-3)
    words = max(float(r["accuracy"]) for r in roles if r["role"] == "positional_words")
    assert float(row["positional_words_accuracy"]) == pytest.approx(words, abs=1e-3)
    assert abs(words - offset) > 0.01
    compared = {r["measure_a"] for r in table("correlations", runs, tmp_path / "c.tsv")}
    assert "positional_accuracy" in compared and "positional_words_accuracy" not in compared
    gates = [read_tsv(baseline.parents[1] / f"gates/all/lam-{lam}/seed-2/heads.tsv") for lam in WORLD.lams]
    opened = [int(next(r["open"] for r in rows if head.items() <= r.items())) for rows in gates]
    assert float(row["gate_survival_all"]) == np.mean(opened)
    assert float(row["gate_last_lambda_all"]) == max(o * float(lam) for o, lam in zip(opened, WORLD.lams, strict=True))
    assert [r["attention"] for r in rows[:36:12]] == list(ATTENTIONS)


def test_without_trees_all_but_the_roles_is_measured(tmp_path: Path) -> None:
    runs = write_results(tmp_path / "treeless", World(lams=("0.1",), scratch=False))
    for path in runs:
        (path / "roles.tsv").unlink(missing_ok=True)
    need = NEEDS["measures"]
    assert not any("roles" in path for path in need.inputs([str(run) for run in runs], need.optional))
    rows = table("measures", runs, tmp_path / "m.tsv")
    assert {row["syntactic_gain"] for row in rows} == {""} and all(row["confidence"] for row in rows)
    held = {row["measure"]: row["holds"] for row in table("claims", runs, tmp_path / "c.tsv")}
    assert not next(holds for measure, holds in held.items() if measure.startswith("syntactic heads"))
    assert next(holds for measure, holds in held.items() if measure.startswith("models with fewer encoder"))


def test_the_head_that_disturbs_most_is_found_and_left_out() -> None:
    """Head 0 of the first layer is the most relevant and the least confident; all else agrees."""
    found = evidence(heads_frame([[9, 1, 2, 3], [1, 2, 3, 4]], [[0, 1, 2, 3], [1, 2, 3, 4]]))
    assert claims.top_heads_differ(found, "lrp") == Finding(1, 2)
    assert claims.exception(found.encoder, "lrp") == (0, pytest.approx(1))
    assert claims.exception_is_first(found, "lrp").ours == 1
    swapped = evidence(heads_frame([[1, 2, 3, 4], [9, 1, 2, 3]], [[1, 2, 3, 4], [0, 1, 2, 3]]))
    assert claims.exception(swapped.encoder, "lrp")[0] == 4
    assert claims.exception_is_first(swapped, "lrp").ours == 0


def test_bleu_at_a_share_lies_on_the_line_between_the_nearest_models() -> None:
    rows = [
        ("baseline", "", "", 1.0, 30.0, None),
        ("pruned", "enc_self", "0", 1.0, 31.0, None),
        ("pruned", "enc_self", "0.1", 0.5, 29.0, None),
        ("pruned", "enc_self", "0.2", 0.25, 25.0, None),
    ]
    found = evidence(runs=swept(*rows))
    assert claims.change_at(found, "enc_self", 0.75, control=False).ours == pytest.approx(-0.5)
    assert claims.change_at(found, "enc_self", 0.375, control=False).ours == pytest.approx(-3)
    assert claims.change_at(found, "enc_self", 0.75, control=True).ours == pytest.approx(-1)
    assert np.isnan(claims.change_at(found, "enc_self", 0.2, control=False).ours)
    assert np.isnan(claims.change_at(found, "all", 0.5, control=False).ours)


def test_gains_over_scratch_are_counted_only_where_both_were_trained() -> None:
    rows = [("pruned", "all", "0.1", 0.5, 29.0, 28.5), ("pruned", "all", "0.2", 0.3, 27.0, 28.0),
            ("pruned", "all", "0.3", 0.2, 20.0, None)]  # fmt: skip
    found = evidence(runs=swept(*rows))
    assert claims.scratch_not_better(found) == Finding(1, 2)
    assert claims.scratch_gain(found).ours == pytest.approx(-0.25)


def test_heads_of_two_functions_count_for_both() -> None:
    heads = heads_frame([[0] * 3, [0] * 3], [[0.9, 0.5, 0.5], [0.9, 0.7, 0.9]])
    found = evidence(heads, functions="probso")
    assert claims.share_with(found, "positional").ours == pytest.approx(2 / 6)
    assert claims.share_with(found, "syntactic").ours == pytest.approx(2 / 6)
    assert claims.positional_confident(found) == Finding(2, 2)
    assert claims.rare_in_first_layer(found) == Finding(1, 1)
    assert claims.rare_in_first_layer(evidence(heads, functions="ooooor")) == Finding(0, 1)


def test_what_has_no_case_at_all_is_not_measured_rather_than_denied() -> None:
    heads = heads_frame([[0] * 3, [0] * 3], [[0.9, 0.5, 0.5], [0.9, 0.7, 0.9]])
    assert np.isnan(claims.rare_in_first_layer(evidence(heads, functions="pooooo")).ours)
    assert claims.share_with(evidence(heads, functions="pooooo"), "syntactic") == Finding(0)
    blind = evidence(heads, swept(("pruned", "enc_self", "0.1", 0.5, 29.0, None)), "pooooo", without_cases="syntactic")
    assert np.isnan(claims.share_with(blind, "syntactic").ours)
    assert claims.share_with(blind, "positional").ours == pytest.approx(1 / 6)
    assert np.isnan(claims.functions_left(blind, 0.5).ours)


@pytest.mark.parametrize(
    ("finding", "condition", "limit", "answer"),
    [(Finding(3, 3), "all", 0, "yes"), (Finding(2, 3), "all", 0, "no"), (Finding(0, 0), "all", 0, ""),
     (Finding(0, 2), "all", 0, "no"),
     (Finding(0.1), "above", 0.1, "no"), (Finding(0.1), "at least", 0.1, "yes"), (Finding(2), "at most", 1, "no"),
     (Finding(0.4, p_value=0.2), "above", 0, "unclear"), (Finding(-0.4, p_value=0.2), "above", 0, "no"),
     (Finding(0.4, low=0.1, high=0.7), "above", 0, "yes"), (Finding(0.4, low=-0.1, high=0.9), "above", 0, "unclear"),
     (Finding(-0.4, low=-0.9, high=0.1), "above", 0, "unclear"), (Finding(-0.4, low=-0.9, high=-0.1), "above", 0, "no"),
     (Finding(2, 3, low=1, high=3), "all", 0, "unclear"), (Finding(3, 3, low=3, high=3), "all", 0, "yes"),
     (Finding(1, chance=0.17), "at most", 1, "too few heads to tell"), (Finding(2, chance=0.17), "at most", 1, "no"),
     (Finding(1, chance=0.02), "at most", 1, "yes"), (Finding(float("nan")), "above", 0, "")],
)  # fmt: skip
def test_a_claim_holds_by_its_condition(finding: Finding, condition: str, limit: float, answer: str) -> None:
    assert holds(finding, condition, limit) == answer


def test_every_claim_of_the_paper_is_tested_and_the_paper_itself_meets_it() -> None:
    paper = load_reference("voita_claims.csv")
    assert sorted(paper["id"]) == sorted([*claims.CLAIMS, *claims.RELEVANCE_CLAIMS])
    for row in paper.dropna(subset="paper").to_dict("records"):
        assert holds(Finding(row["paper"], row["paper_of"]), row["condition"], row["limit"]) == "yes", row["id"]


def test_the_papers_numbers_beside_the_claims_are_those_of_its_tables() -> None:
    paper = load_reference("voita_claims.csv").set_index("id")["paper"]
    types = load_reference("voita_figure9_types.csv").query("pruned > 0")
    fewest = types["enc_self"] < types[["dec_self", "dec_enc"]].min(axis=1)
    assert paper["encoder_fewest"] == fewest.sum()
    wmt = types[types["corpus"] == "WMT"]
    assert paper["source_over_self"] == pytest.approx(((wmt["dec_enc"] - wmt["dec_self"]) / 48).mean(), abs=5e-5)
    layers = load_reference("voita_figure10_layers.csv").query("pruned > 0")
    share = (layers["heads"] / layers["of"]).groupby([layers["attention"], layers["layers"]]).mean()
    assert paper["self_in_low_layers"] == pytest.approx(share["dec_self", "1+2"] - share["dec_self", "5+6"], abs=5e-5)
    assert paper["source_in_high_layers"] == pytest.approx(share["dec_enc", "5+6"] - share["dec_enc", "1+2"], abs=5e-5)
    table2 = load_reference("voita_table2_pruning.csv")
    assert paper["scratch_gain"] == pytest.approx((table2["bleu"] - table2["bleu_scratch"]).mean(), abs=5e-3)
    left = table2[table2["corpus"] == "WMT"].set_index("total")["bleu"]
    assert paper["all_58_of_144"] == pytest.approx(left[58] - left[144])


def test_the_claims_table_asks_every_rule_of_every_seed(runs: list[Path], tmp_path: Path) -> None:
    rows = table("claims", runs, tmp_path / "t.tsv")
    asked = {(row["seed"], row["rule"]) for row in rows if row["rule"]}
    assert asked == set(product(("1", "2", "mean", "sd"), RULES))
    assert {row["holds"] for row in rows} <= {"yes", "no", "unclear", ""}
    gains = load_runs(NEEDS["pruning"], runs)["bleu.json"].query("scope == 'all' and lam != '0' and seed == 1")
    pruned, scratch = (gains[gains["kind"] == kind].set_index("lam")["bleu"] for kind in ("pruned", "scratch"))
    ours = next(r["ours"] for r in rows if r["seed"] == "1" and r["measure"] == "mean BLEU minus that from scratch")
    assert float(ours) == pytest.approx((pruned - scratch).mean(), rel=1e-3)

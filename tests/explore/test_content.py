"""The data of the page against the tables and files that it is made from."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from explored_page import ONE, SEVERAL, Explored, data_of, gates_of
from heads.__main__ import main
from heads.analysis.attention_maps import unpacked
from heads.base.files import read_json, read_jsonl, read_tsv, write_json
from heads.base.names import ATTENTIONS, CLASSIFICATION, SCOPES
from heads.explore.needs import BY_TOPIC, PICTURES, figure_of
from heads.explore.page import as_data
from heads.figures.needs import NEEDS as FIGURE_NEEDS
from heads.tables.needs import CLAIMS
from heads.tables.reading import load_reference


@pytest.fixture(scope="module")
def data(made: Explored) -> dict[str, dict[str, Any]]:
    """The data on the page, by experiment."""
    return {one["name"]: one for one in data_of(made.page)}


def of(rows: list[dict[str, str]], experiment: str, seed: str = "1") -> list[dict[str, str]]:
    return [row for row in rows if row["experiment"] == experiment and row["seed"] == seed]


def as_number(cell: str) -> float | None:
    return float(cell) if cell else None


@pytest.mark.parametrize(("name", "seeds"), [(SEVERAL, 2), (ONE, 1)])
def test_each_head_has_the_numbers_of_the_tables_and_of_several_seeds_the_first(
    made: Explored, data: dict[str, Any], name: str, seeds: int
) -> None:
    rows = data[name]["table"]
    measured, masked = (of(made.tables[table], name) for table in ("measures", "michel_table1"))
    assert data[name]["seeds"] == seeds and len(rows) == len(measured) == len(masked) == 18
    assert [row["attention"] for row in rows] == [kind for kind in ATTENTIONS for _ in range(6)]
    for row, own, without in zip(rows, measured, masked, strict=True):
        place = [str(row[key]) for key in ("attention", "layer", "head")]
        assert place == [own[key] for key in ("attention", "layer", "head")]
        values = {key: value for key, value in row["values"].items() if key != "aer"}
        assert values == {key: as_number(own[key]) for key in values}
        assert row["score_change"] == as_number(without["score_change"])
        assert row["p_value"] == as_number(without["p_value"])
    offered = [measure["key"] for measure in data[name]["measures"]]
    assert {"score_lost", "confidence", "gate_last_lambda_all"} <= {*offered}
    relevance = [key for key in offered if key.startswith("lrp_")]
    plain = [f"lrp_plain_{share}" for share in ("signed_by_step", "signed_of_sums", "absolute")]
    assert relevance == [*plain, "lrp_z-plus_absolute"]
    assert not [key for key in offered if all(row["values"].get(key) is None for row in rows)]


def test_roles_are_those_of_the_file_with_their_intervals_and_only_where_there_are_cases(
    made: Explored, data: dict[str, Any]
) -> None:
    file = read_tsv(made.results / SEVERAL / "baseline/seed-1/roles.tsv")
    for row in data[SEVERAL]["table"]:
        own = [one for one in file if [one["layer"], one["head"]] == [str(row["layer"]), str(row["head"])]]
        expected = [one for one in own if row["attention"] == "enc_self" and int(one["cases"])]
        if row["attention"] == "dec_enc":
            continue
        assert [role["name"] for role in row["roles"]] == [one["name"] for one in expected]
        for role, one in zip(row["roles"], expected, strict=True):
            for column in ("accuracy", "low", "high", "baseline"):
                assert role[column] == as_number(one[column])
            assert role["holds"] == (one["holds"] == "1")
    assert not any(role["role"] == "syntactic" for row in data[ONE]["table"] for role in row["roles"])


def test_cross_attention_heads_have_the_roles_of_their_file_and_a_word_for_what_they_hold(
    made: Explored, data: dict[str, Any]
) -> None:
    file = read_tsv(made.results / SEVERAL / "baseline/seed-1/cross_attention_roles.tsv")
    words = {"being written": "now", "written last": "last", "written next": "next", "": ""}
    seen = set()
    for row in (row for row in data[SEVERAL]["table"] if row["attention"] == "dec_enc"):
        own = [one for one in file if [one["layer"], one["head"]] == [str(row["layer"]), str(row["head"])]]
        found = {role["name"]: role for role in row["roles"]}
        assert {*found} == {one["role"] for one in own}
        for one in own:
            role = found[one["role"]]
            assert role["label"] == f"the source of the token {one['role']}" and role["cases"] == int(one["cases"])
            numbers = [role[name] for name in ("accuracy", "low", "high", "baseline")]
            assert numbers == [float(one[name]) for name in ("share", "low", "high", "offset_share")]
            assert role["holds"] == (one["holds"] == "1")
        assert row["label"] == words[next((one["role"] for one in own if one["holds"] == "1"), "")]
        seen.add(row["label"])
    assert seen == {"now", "last", ""}


def test_decoder_encoder_heads_have_their_alignment_by_the_first_step_and_what_aligns_is_a_function(
    made: Explored, data: dict[str, Any]
) -> None:
    file = read_tsv(made.results / SEVERAL / "baseline/seed-1/alignment_heads.tsv")
    by_head = {(row["layer"], row["head"]): row for row in file if row["step"] == "output"}
    functions = set()
    for row in data[SEVERAL]["table"]:
        if row["attention"] != "dec_enc":
            assert row["alignment"] is None and row["function"] != "alignment"
            continue
        own, found = by_head[str(row["layer"]), str(row["head"])], row["alignment"]
        expected = [float(own[column]) for column in ("aer", "aer_low", "aer_high", "offset", "offset_aer", "pairs")]
        assert [found[key] for key in ("aer", "low", "high", "offset", "offset_aer", "pairs")] == expected
        assert found["aligns"] == (own["aligns"] == "1")
        assert row["function"] == ("alignment" if own["aligns"] == "1" else "other")
        functions.add(row["function"])
    assert functions == {"alignment", "other"}


def test_models_have_their_live_heads_and_attention_but_the_control_and_the_narrow_scope(
    made: Explored, data: dict[str, Any]
) -> None:
    kept = []
    for model in data[SEVERAL]["models"]:
        folder = made.results / SEVERAL / model["run"]
        live = read_json(folder / "model.json")["shape"]["live_heads"]
        digits = "".join(str(int(head in layer)) for kind in ATTENTIONS for layer in live[kind] for head in range(3))
        assert model["live"] == digits
        assert model["score"] == pytest.approx(read_json(folder / "bleu.json")["bleu"], abs=0.005)
        if model["attention"]:
            kept.append(model["run"])
            assert model["attention"] == [one["weights"] for one in read_json(folder / "maps.json")]
        assert (model["translations"] is None) == (model["kind"] == "scratch")
    assert kept == ["baseline/seed-1", "pruned/all/lam-0.01/seed-1", "pruned/all/lam-0.1/seed-1"]
    assert "0" in data[SEVERAL]["models"][-1]["live"]


def test_gates_are_in_the_order_of_the_heads_at_every_record(made: Explored, data: dict[str, Any]) -> None:
    runs = data[SEVERAL]["closing"]
    assert len(runs) == 6
    for run in runs:
        lines = read_jsonl(made.results / SEVERAL / run["run"] / "gates.jsonl")
        assert run["updates"] == [line["update"] for line in lines]
        expected = [np.ravel([line["p_open"][kind] for kind in SCOPES[run["scope"]]]) for line in lines]
        assert np.abs(unpacked(run["p_open"]) - np.ravel(expected)).max() <= 0.5 / 255 + 1e-9


def test_points_have_heads_and_bleu_of_the_table_of_pruning(made: Explored, data: dict[str, Any]) -> None:
    rows, points = of(made.tables["pruning"], SEVERAL), data[SEVERAL]["points"]
    pruned = [point for point in points if point["series"] in ("unpruned", "control", "pruned")]
    assert [[str(p["kept"]), f"{p['score']:.2f}", p["scope"]] for p in pruned] == [
        [row["total"], row["score"], row["scope"]] for row in rows
    ]
    scratch = [f"{point['score']:.2f}" for point in points if point["series"] == "from scratch"]
    assert scratch == [row["score_scratch"] for row in rows if row["score_scratch"]] and len(scratch) == 2
    masked = {point["name"]: point["score"] for point in points if point["series"] == "random, masked"}
    chosen = [row for row in of(made.tables["selection"], SEVERAL) if row["treatment"] == "masked"]
    assert masked == {f"{r['target']}, masked": float(r["score"]) for r in chosen if r["method"] == "random"} != {}


@pytest.mark.parametrize(("name", "seed"), [(SEVERAL, "mean"), (ONE, "1")])
def test_claims_have_the_numbers_and_verdicts_of_their_table(
    made: Explored, data: dict[str, Any], name: str, seed: str
) -> None:
    table = {(row["claim"], row["measure"], row["rule"]): row for row in of(made.tables["claims"], name, seed)}
    claims = data[name]["claims"]
    board = [row for row in made.tables["scoreboard"] if row["metric"] == "bleu"]
    assert len(claims) == len(board) > 50
    for claim, row in zip(claims, board, strict=True):
        own = table[row["claim"], row["measure"], row["rule"]]
        for column in ("paper", "ours", "of", "relative_percent", "low", "high", "p_value"):
            assert claim[column] == as_number(own[column])
        assert (claim["verdict"], claim["study"]) == (own["holds"] or "not measured", row["study"])
        assert claim["other_readings"] == own["other_readings"]


def test_a_claim_leads_to_its_figure_where_there_is_one(data: dict[str, Any]) -> None:
    figures = {claim["name"]: claim["figure"] for claim in data[SEVERAL]["claims"]}
    assert figures["relevance and confidence agree, correlation"] == f"figures/{SEVERAL}/measures.png"
    assert figures["relations found better than by a fixed offset"] == "figures/dependency_scores.png"
    assert {*figures.values()} == {f"figures/{SEVERAL}/measures.png", "figures/dependency_scores.png", ""}
    of_one = {claim["figure"] for claim in data[ONE]["claims"]}
    assert f"figures/{SEVERAL}/measures.png" not in of_one


def test_every_topic_has_a_figure_that_the_workflow_draws() -> None:
    papers = pd.concat([load_reference(name) for name in CLAIMS.reference])
    assert {*papers["topic"]} == {*BY_TOPIC}
    assert {*PICTURES} <= {*FIGURE_NEEDS}
    assert figure_of("Voita et al., sec. 6.3.2; Fig 9, WMT", "which heads stay") == "heads_by_type"
    assert figure_of("Michel et al., Table 1", "") == ""
    told = load_reference("michel_nli_claims.csv")[["source", "topic"]].to_numpy()
    assert all(CLASSIFICATION in FIGURE_NEEDS[figure_of(*claim)].tasks for claim in told)


def test_what_stands_between_script_tags_can_not_end_them() -> None:
    told = {"words": ["</script><!--", "\u2028", 'a "b" \\ c']}
    assert "<" not in as_data(told) and json.loads(as_data(told)) == told


def test_the_page_names_no_address_of_a_network_and_is_small(made: Explored) -> None:
    text = made.page.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.findall(r"https?:|//cdn|@import|url\(", text)
    assert made.page.stat().st_size < 400_000
    assert Path(made.page).name == "explore.html"


def test_a_missing_baseline_and_missing_settings_are_said_in_one_sentence(
    made: Explored, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pruned, baseline = (str(made.results / ONE / run) for run in ("pruned/all/lam-0.03/seed-1", "baseline/seed-1"))
    settings = ["--gates", gates_of(SEVERAL), "--out", str(tmp_path / "x.html")]
    assert main(["explore", "--runs", pruned, *settings]) == 1
    assert "--runs names no baseline" in capsys.readouterr().err
    assert main(["explore", "--runs", baseline, *settings]) == 1
    assert f"--gates lacks {ONE}: give" in capsys.readouterr().err


def test_the_page_is_made_without_tables_gates_or_pruned_models(made: Explored, tmp_path: Path) -> None:
    settings = ["--gates", gates_of(ONE), "--out", str(tmp_path / "x.html")]
    assert main(["explore", "--runs", str(made.results / ONE / "baseline/seed-1"), *settings]) == 0
    (one,) = data_of(tmp_path / "x.html")
    assert [measure["key"] for measure in one["measures"]] == ["aer"]
    assert (one["points"], one["closing"], one["claims"]) == ([], [], [])
    assert len(one["table"]) == 18 and len(one["models"]) == 1 and one["models"][0]["attention"]


def test_heads_have_their_rates_of_alignment_by_the_first_step(made: Explored, data: dict[str, Any]) -> None:
    for experiment in (SEVERAL, ONE):
        file = read_tsv(made.results / experiment / "baseline/seed-1/alignment_heads.tsv")
        rows = {(int(row["layer"]), int(row["head"])): row for row in file if row["step"] == "output"}
        found = {(row["layer"], row["head"]): row for row in data[experiment]["table"] if row["alignment"]}
        assert {row["attention"] for row in found.values()} == {"dec_enc"} and {*found} == {*rows}
        for place, row in rows.items():
            own = found[place]["alignment"]
            for name, column in (("low", "aer_low"), ("high", "aer_high"), ("precision", "precision")):
                assert own[name] == float(row[column])
            assert own["aer"] == float(row["aer"]) and own["recall"] == float(row["recall"])
            assert found[place]["values"]["aer"] == own["aer"]


@pytest.mark.parametrize("against", ["references", "unpruned model"])
def test_the_page_calls_a_score_fidelity_where_a_model_wrote_the_targets(
    made: Explored, tmp_path: Path, against: str
) -> None:
    run = tmp_path / ONE / "baseline" / "seed-1"
    shutil.copytree(made.results / ONE / "baseline/seed-1", run)
    write_json(run / "bleu.json", {**read_json(run / "bleu.json"), "against": against})
    words = ["--gates", gates_of(ONE), "--out", str(tmp_path / "x.html")]
    words += ["--tables", str(made.results / "tables" / "table_measures.tsv")]
    assert main(["explore", "--runs", str(run), *words]) == 0
    (one,) = data_of(tmp_path / "x.html")
    name, told = (
        ("BLEU", "") if against == "references" else ("BLEU (fidelity)", "against what the unpruned model wrote, ")
    )
    assert one["metric"] == {"name": name, "unit": ""} and one["signature"] == f"{told}nrefs:1|tok:13a"
    (lost,) = (measure for measure in one["measures"] if measure["key"] == "score_lost")
    assert lost["name"] == f"{name} lost when masked alone"
    assert lost["what"] == f"test {name} of the model less its {name} without this one head"


def test_the_page_says_that_self_attention_was_grown_into_a_decoder(made: Explored, tmp_path: Path) -> None:
    run = tmp_path / ONE / "baseline" / "seed-1"
    shutil.copytree(made.results / ONE / "baseline/seed-1", run)
    settings = ["--gates", gates_of(ONE), "--out", str(tmp_path / "x.html")]
    notes = []
    for grown in (False, True):
        write_json(run / "model.json", {**read_json(run / "model.json"), "grown": grown})
        assert main(["explore", "--runs", str(run), *settings]) == 0
        notes += [one["note"] for one in data_of(tmp_path / "x.html")]
    assert notes[0] == "" and "self-attention is young" in notes[1]


def test_an_experiment_without_an_alignment_offers_no_error_rate(made: Explored, tmp_path: Path) -> None:
    run = tmp_path / ONE / "baseline" / "seed-1"
    shutil.copytree(made.results / ONE / "baseline/seed-1", run)
    (run / "alignment_heads.tsv").unlink()
    settings = ["--gates", gates_of(ONE), "--out", str(tmp_path / "x.html")]
    assert main(["explore", "--runs", str(run), *settings]) == 0
    (one,) = data_of(tmp_path / "x.html")
    assert one["measures"] == [] and {row["alignment"] for row in one["table"]} == {None}
    assert {row["function"] for row in one["table"] if row["attention"] == "dec_enc"} == {""}

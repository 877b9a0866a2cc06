"""The data of the page against the tables and files that it is made from."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from explored_page import ONE, SEVERAL, TOLD, Explored, data_of, gates_of
from fake_labels import LABELS, MAJORITY
from heads.__main__ import main
from heads.analysis.attention_maps import unpacked
from heads.base.bootstrap import MICHEL_SIGNIFICANT
from heads.base.files import read_json, read_jsonl, read_tsv, write_json
from heads.base.names import ATTENTIONS, CLASSIFICATION, SCOPES
from heads.explore.needs import BY_TOPIC, PICTURES, figure_of
from heads.explore.page import PARTS, as_data
from heads.tables.catalogue import CLAIMS, FIGURES
from heads.tables.reading import load_reference


def of(rows: list[dict[str, str]], experiment: str, seed: str = "1") -> list[dict[str, str]]:
    return [row for row in rows if row["experiment"] == experiment and row["seed"] == seed]


def as_number(cell: str) -> float | None:
    return float(cell) if cell else None


def test_experiments_stand_in_the_order_of_their_runs_each_with_its_own_score(data: dict[str, Any]) -> None:
    assert [*data] == [SEVERAL, ONE, TOLD]
    for name, one in data.items():
        known = ("classification", "accuracy") if name == TOLD else ("translation", "BLEU")
        assert (one["task"], one["metric"]["name"]) == known
    assert data[TOLD]["signature"] == f"the likeliest label alone has {MAJORITY} %"
    assert data[TOLD]["sentences_scored"] == 500 and "wanted" not in data[SEVERAL]["sentences"][0]
    assert [one["wanted"] for one in data[TOLD]["sentences"]] == [*LABELS[:2]]


@pytest.mark.parametrize(
    ("name", "seeds", "kinds", "of_kind"),
    [(SEVERAL, 2, ATTENTIONS, 6), (ONE, 1, ATTENTIONS, 6), (TOLD, 1, ATTENTIONS[:1], 8)],
)
def test_each_head_has_the_numbers_of_the_tables_and_of_several_seeds_the_first(
    made: Explored, data: dict[str, Any], name: str, seeds: int, kinds: tuple[str, ...], of_kind: int
) -> None:
    rows = data[name]["table"]
    measured, masked = (of(made.tables[table], name) for table in ("measures", "michel_table1"))
    assert data[name]["seeds"] == seeds and len(rows) == len(measured) == len(masked)
    assert [row["attention"] for row in rows] == [kind for kind in kinds for _ in range(of_kind)]
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


def test_heads_of_a_classifier_are_all_measured_and_described_by_its_labels(data: dict[str, Any]) -> None:
    keys = ("confidence", "lrp_plain_absolute", "importance_example", "positional_accuracy", "gate_last_lambda_all")
    for row in data[TOLD]["table"]:
        assert None not in [row["values"][key] for key in (*keys, "score_lost")]
        assert row["roles"] and row["alignment"] is None
    said = {measure["key"]: measure["name"] + measure["what"] for measure in data[TOLD]["measures"]}
    assert not [words for words in said.values() if re.search("BLEU|subword is at|translat|next subword", words)]
    assert said["score_lost"].startswith("accuracy lost") and "likeliest label" in said["lrp_plain_absolute"]


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


@pytest.mark.parametrize("name", [SEVERAL, ONE])
def test_cross_attention_heads_have_their_alignment_by_the_first_step_and_what_aligns_is_a_function(
    made: Explored, data: dict[str, Any], name: str
) -> None:
    file = read_tsv(made.results / name / "baseline/seed-1/alignment_heads.tsv")
    by_head = {(row["layer"], row["head"]): row for row in file if row["step"] == "output"}
    columns = {"aer": "aer", "low": "aer_low", "high": "aer_high"}
    columns |= {key: key for key in ("precision", "recall", "offset", "offset_aer", "pairs")}
    functions = set()
    for row in data[name]["table"]:
        if row["attention"] != "dec_enc":
            assert row["alignment"] is None and row["function"] != "alignment"
            continue
        own, found = by_head.pop((str(row["layer"]), str(row["head"]))), row["alignment"]
        assert {key: found[key] for key in columns} == {key: float(own[column]) for key, column in columns.items()}
        assert found["aligns"] == (own["aligns"] == "1") and row["values"]["aer"] == found["aer"]
        assert row["function"] == ("alignment" if own["aligns"] == "1" else "other")
        functions.add(row["function"])
    assert functions == {"alignment", "other"} and not by_head


@pytest.mark.parametrize(
    ("name", "metric", "heads", "lams"), [(SEVERAL, "bleu", 3, ("0.01", "0.1")), (TOLD, "accuracy", 4, ("0.03", "0.1"))]
)
def test_models_have_their_live_heads_and_attention_but_the_control_and_the_narrow_scope(
    made: Explored, data: dict[str, Any], name: str, metric: str, heads: int, lams: tuple[str, ...]
) -> None:
    kept = []
    for model in data[name]["models"]:
        folder = made.results / name / model["run"]
        live = read_json(folder / "model.json")["shape"]["live_heads"]
        digits = [str(int(head in layer)) for kind in ATTENTIONS for layer in live[kind] for head in range(heads)]
        assert model["live"] == "".join(digits)
        assert model["score"] == pytest.approx(read_json(folder / f"{metric}.json")[metric], abs=0.005)
        if model["attention"]:
            kept.append(model["run"])
            assert model["attention"] == [one["weights"] for one in read_json(folder / "maps.json")]
        assert (model["translations"] is None) == (model["kind"] == "scratch")
        assert name != TOLD or model["translations"] in (None, ["contradiction", "neutral"])
    assert kept == ["baseline/seed-1", *(f"pruned/all/lam-{lam}/seed-1" for lam in lams)]
    assert "0" in data[name]["models"][-1]["live"]


def test_gates_are_in_the_order_of_the_heads_at_every_record(made: Explored, data: dict[str, Any]) -> None:
    runs = data[SEVERAL]["closing"]
    assert len(runs) == 6
    for run in runs:
        lines = read_jsonl(made.results / SEVERAL / run["run"] / "gates.jsonl")
        assert run["updates"] == [line["update"] for line in lines]
        expected = [np.ravel([line["p_open"][kind] for kind in SCOPES[run["scope"]]]) for line in lines]
        assert np.abs(unpacked(run["p_open"]) - np.ravel(expected)).max() <= 0.5 / 255 + 1e-9


@pytest.mark.parametrize("name", [SEVERAL, TOLD])
def test_points_have_heads_and_scores_of_the_tables(made: Explored, data: dict[str, Any], name: str) -> None:
    rows, points = of(made.tables["pruning"], name), data[name]["points"]
    pruned = [point for point in points if point["series"] in ("unpruned", "control", "pruned")]
    assert [(p["kept"], p["of"], p["score"], p["scope"]) for p in pruned] == [
        (int(row["total"]), int(row["of"]), float(row["score"]), row["scope"]) for row in rows
    ]
    scratch = [point["score"] for point in points if point["series"] == "from scratch"]
    assert scratch == [float(row["score_scratch"]) for row in rows if row["score_scratch"]] and len(scratch) == 2
    masked = {point["name"]: point["score"] for point in points if point["series"] == "random, masked"}
    chosen = [row for row in of(made.tables["selection"], name) if row["treatment"] == "masked"]
    assert masked == {f"{r['target']}, masked": float(r["score"]) for r in chosen if r["draw"]} != {}


@pytest.mark.parametrize(
    ("name", "seed", "metric", "least"),
    [(SEVERAL, "mean", "bleu", 51), (ONE, "1", "bleu", 51), (TOLD, "1", "accuracy", 7)],
)
def test_claims_have_the_numbers_and_verdicts_of_their_table(
    made: Explored, data: dict[str, Any], name: str, seed: str, metric: str, least: int
) -> None:
    table = {(row["claim"], row["measure"], row["rule"]): row for row in of(made.tables["claims"], name, seed)}
    claims = data[name]["claims"]
    board = [row for row in made.tables["scoreboard"] if row["metric"] == metric]
    assert len(claims) == len(board) >= least
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
    assert {claim["figure"] for claim in data[TOLD]["claims"]} == {f"figures/{TOLD}/michel_fig1.png", ""}
    assert len({claim["topic"] for claim in data[TOLD]["claims"]}) == 3


def test_every_topic_has_a_figure_that_the_workflow_draws() -> None:
    papers = pd.concat([load_reference(name) for name in CLAIMS.reference])
    assert {*papers["topic"]} == {*BY_TOPIC}
    assert {*PICTURES} <= {*FIGURES}
    assert figure_of("Voita et al., sec. 6.3.2; Fig 9, WMT", "which heads stay") == "heads_by_type"
    assert figure_of("Michel et al., Table 1", "") == ""
    told = load_reference("michel_nli_claims.csv")[["source", "topic"]].to_numpy()
    assert all(CLASSIFICATION in FIGURES[figure_of(*claim)].need.tasks for claim in told)


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


def alone(run: Path, page: Path, *flags: str) -> dict[str, Any]:
    """The data of a page of one baseline."""
    assert main(["explore", "--runs", str(run), "--gates", gates_of(ONE), "--out", str(page), *flags]) == 0
    (one,) = data_of(page)
    return one


@pytest.fixture
def copied(made: Explored, tmp_path: Path) -> Path:
    """A copy of a baseline's folder, to be changed."""
    return Path(shutil.copytree(made.results / ONE / "baseline/seed-1", tmp_path / ONE / "baseline" / "seed-1"))


def test_the_page_is_made_without_tables_gates_or_pruned_models(made: Explored, tmp_path: Path) -> None:
    one = alone(made.results / ONE / "baseline/seed-1", tmp_path / "x.html")
    assert [measure["key"] for measure in one["measures"]] == ["aer"]
    assert (one["points"], one["closing"], one["claims"]) == ([], [], [])
    assert len(one["table"]) == 18 and len(one["models"]) == 1 and one["models"][0]["attention"]


@pytest.mark.parametrize(
    ("against", "name", "told"),
    [
        ("references", "BLEU", ""),
        ("unpruned model", "BLEU (fidelity)", "against what the unpruned model wrote, "),
    ],
)
def test_the_page_calls_a_score_fidelity_where_a_model_wrote_the_targets(
    made: Explored, copied: Path, tmp_path: Path, against: str, name: str, told: str
) -> None:
    write_json(copied / "bleu.json", {**read_json(copied / "bleu.json"), "against": against})
    one = alone(copied, tmp_path / "x.html", "--tables", str(made.results / "tables" / "table_measures.tsv"))
    assert one["metric"] == {"name": name, "unit": ""} and one["signature"] == f"{told}nrefs:1|tok:13a"
    (lost,) = (measure for measure in one["measures"] if measure["key"] == "score_lost")
    assert lost["name"] == f"{name} lost when masked alone"
    assert lost["what"] == f"test {name} of the model less its {name} without this one head"


def test_the_page_says_that_self_attention_was_grown_into_a_decoder(copied: Path, tmp_path: Path) -> None:
    notes = []
    for grown in (False, True):
        write_json(copied / "model.json", {**read_json(copied / "model.json"), "grown": grown})
        notes.append(alone(copied, tmp_path / "x.html")["note"])
    assert notes[0] == "" and "self-attention is young" in notes[1]


def test_an_experiment_without_an_alignment_offers_no_error_rate(copied: Path, tmp_path: Path) -> None:
    (copied / "alignment_heads.tsv").unlink()
    one = alone(copied, tmp_path / "x.html")
    assert one["measures"] == [] and {row["alignment"] for row in one["table"]} == {None}
    assert {row["function"] for row in one["table"] if row["attention"] == "dec_enc"} == {""}


def test_the_page_calls_a_loss_significant_at_the_level_of_the_tables() -> None:
    assert f"const SIGNIFICANT = {MICHEL_SIGNIFICANT};" in (PARTS / "grids.js").read_text(encoding="utf-8").splitlines()

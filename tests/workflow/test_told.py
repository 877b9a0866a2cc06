"""A real run of the workflow on a tiny classification experiment, alone and planned beside one that translates."""

import re
from pathlib import Path

import pytest
from test_readme import TABLE as README_TABLE

from checkouts import ROOT, TINY, checkout, snakemake
from explored_page import data_of
from heads.base.files import read_json, read_lines, read_tsv
from heads.base.names import CLASSIFICATION
from heads.tables.catalogue import FIGURES, TABLES

pytestmark = pytest.mark.slow

TOLD = ROOT / "tests/workflow/told.yaml"


@pytest.fixture(scope="module")
def told_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which the experiment was run to the last figure; read only."""
    folder = checkout(tmp_path_factory.mktemp("told run"))
    done = snakemake(folder, "--cores", "2", "--configfile", str(TOLD))
    assert done.returncode == 0, done.stdout[-3000:]
    return folder


def test_an_experiment_that_classifies_makes_every_table_and_figure_of_its_task_and_no_other(told_run: Path) -> None:
    tables = {path.name for path in (told_run / "results/tables").glob("*.tsv")}
    of_task = {name for name, table in TABLES.items() if CLASSIFICATION in table.need.tasks}
    assert tables == {f"table_{name}.tsv" for name in (*of_task, "corpus")}
    figures = {path.name for path in (told_run / "results/figures/told").glob("*.*")}
    drawn = {name for name, one in FIGURES.items() if CLASSIFICATION in one.need.tasks and not one.across}
    endings = {name: ("pdf", "png", *(["gif"] if FIGURES[name].animation else [])) for name in drawn}
    assert figures == {f"{name}.{ending}" for name in drawn for ending in endings[name]}
    assert all((told_run / f"results/figures/{name}.pdf").exists() for name, one in FIGURES.items() if one.across)
    assert (told_run / "results/explore.html").exists()


def test_every_run_that_is_scored_has_a_label_for_every_example(told_run: Path) -> None:
    scored = sorted((told_run / "results/told").rglob("accuracy.json"))
    assert len(scored) == 1 + 3 + 2 + 1 + 4
    for path in scored:
        assert len(read_lines(path.parent / "predictions.txt")) == 36 == read_json(path)["examples"]
    rows = read_tsv(told_run / "results/tables/table_pruning.tsv")
    assert (
        {row["metric"] for row in rows} == {"accuracy"}
        and {row["kind"] for row in rows} == {"baseline", "pruned"}
        and len(rows) == 4
    )
    assert [float(row["majority"]) for row in rows] == pytest.approx([100 / 3] * 4, abs=0.01)


def test_the_course_of_a_training_ends_with_what_confidence_and_roles_say_of_the_finished_model(told_run: Path) -> None:
    baseline = told_run / "results/told/baseline/seed-1"
    finished = [row for row in read_tsv(baseline / "dynamics.tsv") if row["finished"] == "1"]
    alone = read_tsv(baseline / "confidence.tsv")
    assert [(row["layer"], row["head"], row["accuracy"]) for row in finished if row["role"] == "confidence"] == [
        (row["layer"], row["head"], row["confidence"]) for row in alone
    ]
    roles = [row for row in finished if row["role"] != "confidence"]
    assert [row["accuracy"] for row in roles] == [row["accuracy"] for row in read_tsv(baseline / "roles.tsv")]


def test_the_page_of_a_classifier_alone_has_its_labels_and_the_attention_of_its_pruned_models(told_run: Path) -> None:
    (one,) = data_of(told_run / "results/explore.html")
    assert (one["task"], one["metric"]) == ("classification", {"name": "accuracy", "unit": "%"})
    assert len(one["sentences"]) == 3 and all(sum(map(bool, each["tree_heads"])) > 5 for each in one["sentences"])
    shown = {model["run"]: model for model in one["models"] if model["attention"]}
    assert {*shown} == {f"{run}/seed-1" for run in ("baseline", "pruned/all/lam-0.5", "pruned/all/keep-2")}
    labels = {"entailment", "neutral", "contradiction"}
    assert all({*model["translations"]} <= labels for model in shown.values())
    assert len(one["claims"]) == 7 and {claim["figure"] for claim in one["claims"]} == {
        f"figures/told/michel_fig{number}.png" for number in (1, 2, 3, 5)
    }


def test_every_figure_of_a_classifier_that_the_readme_asks_for_is_made(told_run: Path) -> None:
    named = [word for line in README_TABLE for word in line.split() if "/nli/" in word]
    assert len(named) > 4
    assert not [name for name in named if not (told_run / name.replace("/nli/", "/told/")).is_file()]


def test_both_tasks_are_planned_side_by_side(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    words = ("-n", "--configfile", str(TINY), str(TOLD), "--config", "run=[tiny,told]")
    done = snakemake(folder, *words)
    assert done.returncode == 0, done.stdout[-2000:]
    for name in ("table_pruning", "table_roles", "explore.html"):
        assert name in done.stdout
    page = re.findall(r"^rule explore:\n    input: (.*)$", done.stdout, re.MULTILINE)[0].split(", ")
    for run in ("tiny/baseline", "told/baseline", "tiny/pruned/all/lam-50", "told/pruned/all/lam-0.5"):
        assert f"results/{run}/seed-1/maps.json" in page
    assert {"results/told/baseline/seed-1/accuracy.json", "results/tables/table_measures.tsv"} <= {*page}
    drawn = {f"results/figures/told/michel_fig{number}.png" for number in (1, 2, 3, 5)}
    assert drawn <= {*page} and "results/figures/told/michel_fig4.png" not in page
    scores = {"results/told/baseline/seed-1/accuracy.json", "results/tiny/baseline/seed-1/bleu.json"}
    for name in ("pruning", "claims"):
        rule = rf"^rule table:\n    input: (.*)\n    output: results/tables/table_{name}\.tsv"
        assert scores <= {*re.findall(rule, done.stdout, re.MULTILINE)[0].split(", ")}

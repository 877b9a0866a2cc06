"""Real runs of the workflow on a tiny experiment: what is made, what is made again, and how mistakes are reported."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from test_commands import Job, jobs_in
from test_readme import LINES, TABLE

from checkouts import ROOT, TINY, checkout, configuration, snakemake
from heads.__main__ import main
from heads.base.files import read_json, read_lines, read_tsv, read_yaml, write_json, write_lines, write_text
from heads.base.names import TRANSLATION
from heads.base.packaged import place_of
from heads.config.corpus_entries import local_files_of, parse_corpus
from heads.config.settings import merged, resolve
from heads.tables.catalogue import FIGURES as ALL_FIGURES
from heads.tables.catalogue import TABLES as ALL_TABLES
from slow_ones import slow_but
from warm_python import warm_python

# For models that translate, as in the tiny experiment; others are in test_told.py.
TABLES = [name for name, table in ALL_TABLES.items() if TRANSLATION in table.need.tasks]
FIGURES = {name: figure for name, figure in ALL_FIGURES.items() if TRANSLATION in figure.need.tasks}

ONE_MORE = TINY.read_text(encoding="utf-8").replace("all: [50]", "all: [0.002, 50]")


VARIANTS = "config/demo-variants.yaml"


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which the tiny experiment was run to the last figure; only to be read or copied."""
    folder = checkout(tmp_path_factory.mktemp("tiny run"))
    done = snakemake(folder, "--cores", "2", "--configfile", str(TINY))
    assert done.returncode == 0, done.stdout[-3000:]
    return folder


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A checkout in which nothing was run."""
    return checkout(tmp_path)


def planned(said: str) -> dict[str, int]:
    """Jobs by rule, as a dry run prints them."""
    return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", said, re.MULTILINE)}


@pytest.mark.slow
def test_jobs_of_these_tests_are_forked_and_not_started(fresh: Path) -> None:
    with (fresh / "workflow/Snakefile").open("a", encoding="utf-8") as snakefile:
        snakefile.write("rule where:\n    output: 'where.txt'\n    shell: 'which python > {output}'\n")
    done = snakemake(fresh, "where.txt", "--cores", "1")
    assert done.returncode == 0 and read_lines(fresh / "where.txt") == [warm_python()], done.stdout


@pytest.mark.slow
def test_a_job_finds_the_clone_first_and_then_what_pythonpath_names(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(fresh / "site/brought.py", "import heads\nprint(heads.__file__)\n")
    with (fresh / "workflow/Snakefile").open("a", encoding="utf-8") as snakefile:
        snakefile.write("rule whose:\n    output: 'whose.txt'\n    shell: 'python -m brought > {output}'\n")
    for packages in ("site", f"{fresh}/no:{fresh}/site"):
        monkeypatch.setenv("PYTHONPATH", packages)
        done = snakemake(fresh, "whose.txt", "--cores", "1", "--forceall")
        assert done.returncode == 0, done.stdout[-2000:]
        assert read_lines(fresh / "whose.txt") == [str(fresh / "workflow/heads/__init__.py")]


@pytest.mark.slow
@pytest.mark.parametrize("alone", slow_but([""], ["demo-footnote8", "multi30k", "news-en-de", ""]))
def test_every_experiment_can_be_planned(fresh: Path, alone: str) -> None:
    """All of them together; and one without all figures and one without gold trees, each alone."""
    config = merged(configuration(fresh), read_yaml(fresh / VARIANTS))
    experiments = [alone] if alone else list(resolve(config))
    for path in (path for entry in config["corpora"].values() for path in local_files_of(parse_corpus(entry))):
        (fresh / path).parent.mkdir(parents=True, exist_ok=True)
        (fresh / path).touch()
    for experiment in resolve(config).values():
        # Corpora given by name come in packages.
        if (pretrained := experiment.baseline.pretrained) and not place_of(pretrained).is_dir():
            stacks = (f"{stack}_{what}" for stack in ("encoder", "decoder") for what in ("layers", "attention_heads"))
            write_text(fresh / pretrained / "config.json", json.dumps(dict.fromkeys(stacks, 6)))
    done = snakemake(fresh, "-n", "--configfile", VARIANTS, "--config", f"run=[{','.join(experiments)}]")
    assert done.returncode == 0, done.stdout[-2000:]
    trained = re.findall(
        r"^    output: results/([\w-]+)/baseline/seed-\d+/model.safetensors", done.stdout, re.MULTILINE
    )
    assert len(trained) > 6 * (not alone) and sorted({*trained}) == sorted(experiments)


@pytest.mark.slow
def test_the_tiny_experiment_makes_every_table_and_every_figure(tiny_run: Path) -> None:
    made = {path.relative_to(tiny_run / "results").as_posix() for path in (tiny_run / "results").rglob("*")}
    assert {f"tables/table_{name}.tsv" for name in [*TABLES, "corpus", "parser"]} <= made
    for name, figure in FIGURES.items():
        folder = "figures" if figure.across else "figures/tiny"
        endings = ("pdf", "png", *(["gif"] if figure.animation else []))
        assert {f"{folder}/{name}.{ending}" for ending in endings} <= made
    assert "explore.html" in made


@pytest.fixture(scope="module")
def drawn(tiny_run: Path) -> list[Job]:
    """The jobs of all tables and figures, and of the page."""
    again = ("table", "table_corpus", "table_parser", "figure", "figure_across", "figure_animated", "explore")
    said = snakemake(tiny_run, "-n", "-p", "--configfile", str(TINY), "--forcerun", *again).stdout
    return [job for job in jobs_in(said) if job.rule in again]


def alone(job: Job, tiny_run: Path, place: Path) -> Path:
    """A folder with the inputs of a job and nothing else."""
    for name in job.inputs:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tiny_run / name, place / name)
    return place


def do(job: Job) -> None:
    """Run the command of a job in the current folder."""
    words = {name: [value] if value.startswith("{") else value.split() for name, value in job.flags.items()}
    flags = [word for name, values in words.items() for word in (f"--{name}", *values)]
    stage = "explore" if job.rule == "explore" else "figure" if "out-png" in job.flags else "table"
    assert main([stage, *flags]) == 0, job


@pytest.mark.slow
def test_tables_and_figures_come_out_the_same_from_the_files_alone_that_their_rules_name(
    tiny_run: Path, drawn: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(drawn) == len(TABLES) + 2 + len(FIGURES) + 1
    for job in drawn:
        place = alone(job, tiny_run, tmp_path / Path(job.outputs[0]).name)
        monkeypatch.chdir(place)
        do(job)
        for name in job.outputs:
            assert (place / name).read_bytes() == (tiny_run / name).read_bytes(), name


@pytest.mark.slow
def test_the_table_of_pruning_holds_the_score_and_the_heads_of_every_run(
    tiny_run: Path, drawn: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [job] = [job for job in drawn if job.flags.get("name") == "pruning"]
    monkeypatch.chdir(alone(job, tiny_run, tmp_path))
    # So little training leaves all scores at zero, so each run gets a score that identifies it.
    scores: dict[str, float] = {}
    for path in sorted(Path("results/tiny").glob("**/bleu.json")):
        run = path.parent.relative_to("results/tiny").as_posix()
        scores[run] = 10 + 3.25 * len(scores) ** 1.5
        write_json(path, {**read_json(path), "bleu": scores[run]})
    do(job)
    rows = read_tsv(Path(job.outputs[0]))
    runs = ["/".join(filter(None, (row["kind"], row["scope"], target_of(row), "seed-1"))) for row in rows]
    assert sorted(runs) == sorted(run for run in scores if run.startswith(("baseline", "pruned")))
    assert "scratch/all/lam-50/seed-1" in scores and not [run for run in scores if "dsp" in run]
    for row, run in zip(rows, runs, strict=True):
        live = read_json(Path(f"results/tiny/{run}/model.json"))["shape"]["live_heads"]
        heads = {kind: sum(map(len, layers)) for kind, layers in live.items()}
        assert {kind: int(row[kind]) for kind in heads} == heads and int(row["total"]) == sum(heads.values())
        beside = {"score": run, "score_baseline": "baseline/seed-1"}
        if row["scope"]:
            beside |= {"score_scratch": run.replace("pruned", "scratch"), "score_control": CONTROL.format(**row)}
            beside |= {"score_trained_on": run.replace("pruned", "selected")}
        for column, other in beside.items():
            assert row[column] == (f"{scores[other]:.2f}" if other in scores else ""), (run, column)


CONTROL = "pruned/{scope}/lam-0/seed-1"


def target_of(row: dict[str, str]) -> str:
    """The target in the path of a row's run."""
    return f"lam-{row['lam']}" if row["lam"] else f"keep-{row['keep']}" if row["keep"] else ""


@pytest.mark.slow
def test_the_other_tables_have_a_row_for_all_that_was_measured(tiny_run: Path) -> None:
    tables = {name: read_tsv(tiny_run / f"results/tables/table_{name}.tsv") for name in [*TABLES, "corpus"]}
    heads, layers, choices = 3 * 2 * 2, 3 * 2, 2 * (9 + 2 * 2)
    assert Counter(row["batch_sentences"] for row in tables["speed"]) == {"1": 5, "3": 5}
    assert sum(row["experiment"] == "tiny" for row in tables["michel_table1"]) == heads  # beside the paper's own rows
    assert len({(row["attention"], row["layer"], row["head"]) for row in tables["measures"]}) == heads
    assert len(tables["michel_table2"]) == layers
    assert sum(row["updates"] == "0" for row in tables["selection"]) == choices
    assert len({(row["relation"], row["direction"]) for row in tables["dependencies"]}) == 4 * 2
    own = {row["split"]: row for row in tables["corpus"]}
    for split in ("train", "dev", "test"):
        words = [line.split() for line in read_lines(tiny_run / f"results/corpora/tiny/{split}.target.txt")]
        assert own[split]["pairs"] == str(len(words))
        assert own[split]["target_words_per_sentence"] == f"{sum(map(len, words)) / len(words):.1f}"


# Imported models: tests/cli/test_imported_commands.py, tests/interop/test_from_fairseq.py, tests/one_model.
OF_OTHERS = ("opus", "heads import", "firefox", "small")
README_RUNS = [line for line in LINES if line.startswith("heads ") and not any(w in line for w in OF_OTHERS)]


@pytest.mark.slow
def test_what_the_readme_does_with_a_finished_model_can_be_done(tiny_run: Path, tmp_path: Path) -> None:
    assert len(README_RUNS) == 4
    for name in ("results", ".snakemake"):
        (tmp_path / name).symlink_to(tiny_run / name)
    source = read_lines(tiny_run / "results/corpora/tiny/test.source.txt")[:10]
    write_lines(tmp_path / "source.txt", source)
    folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "PATH": f"{folder}:{os.environ['PATH']}"}
    said = []
    for line in README_RUNS:
        command = line.replace("/demo/", "/tiny/").replace("lam-0.01", "lam-50").replace(" demo", " tiny")
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    translations = (tiny_run / "results/tiny/pruned/all/lam-50/seed-1/translations.txt").read_text(encoding="utf-8")
    assert (tmp_path / "translations.txt").read_text(encoding="utf-8") == said[README_RUNS.index(LAST)] == translations
    kept = read_tsv(tmp_path / "docs/measured/tiny/tables/table_pruning.tsv")
    assert kept == read_tsv(tiny_run / "results/tables/table_pruning.tsv")


LAST = "heads translate my-model < source.txt"


@pytest.mark.slow
def test_every_file_that_the_readme_offers_of_the_demo_was_made_here_too(tiny_run: Path) -> None:
    named = [word for line in TABLE for word in line.split() if word.startswith("results/")]
    assert len(named) > 20
    assert not [
        name for name in named if "/nli/" not in name and not (tiny_run / name.replace("/demo/", "/tiny/")).is_file()
    ]


@pytest.mark.slow
def test_a_huge_lambda_keeps_fewer_heads_than_the_control(tiny_run: Path) -> None:
    rows = {
        (row["scope"], float(row["lam"])): int(row["total"])
        for row in read_tsv(tiny_run / "results/tables/table_pruning.tsv")
        if row["kind"] == "pruned" and row["lam"]
    }
    assert rows["all", 50] < rows["all", 0]
    assert rows["enc_self", 50] < rows["enc_self", 0]


@pytest.mark.slow
def test_a_second_run_does_nothing(tiny_run: Path) -> None:
    done = snakemake(tiny_run, "-n", "--configfile", str(TINY))
    assert "Nothing to be done" in done.stdout


@pytest.mark.slow
def test_one_more_lambda_trains_one_pruned_and_one_scratch_model_and_no_other(tiny_run: Path, tmp_path: Path) -> None:
    overlay = tmp_path / "one_more.yaml"
    overlay.write_text(ONE_MORE, encoding="utf-8")
    jobs = planned(snakemake(tiny_run, "-n", "--configfile", str(overlay)).stdout)
    assert jobs["gates"] == jobs["pruned"] == jobs["scratch"] == 1
    assert not {"baseline", "corpus", "bpe", "encode"} & set(jobs)


@pytest.mark.slow
def test_forcing_one_lambda_retrains_that_model_and_nothing_else(tiny_run: Path) -> None:
    model = "results/tiny/gates/all/lam-50/seed-1/model.safetensors"
    jobs = planned(snakemake(tiny_run, "-n", model, "--forcerun", "gates", "--configfile", str(TINY)).stdout)
    assert jobs == {"gates": 1, "total": 1}


@pytest.mark.slow
def test_changing_how_roles_are_judged_retrains_nothing(tiny_run: Path, tmp_path: Path) -> None:
    overlay = tmp_path / "roles.yaml"
    overlay.write_text(TINY.read_text(encoding="utf-8").replace("min_cases: 5", "min_cases: 6"), encoding="utf-8")
    jobs = planned(snakemake(tiny_run, "-n", "--configfile", str(overlay)).stdout)
    assert jobs["dynamics"] == 1  # the course of roles
    assert jobs["roles"] == 9  # one unpruned, three pruned in the encoder, four everywhere, one from scratch
    assert not {"baseline", "gates", "pruned", "scratch", "score", "lrp"} & set(jobs)


# One of each kind of training; the others in the table stay as they are.
BASELINE = ("baseline/seed-1",)
AFTER = (
    *("gates/all/lam-50/seed-1", "pruned/all/lam-50/seed-1", "scratch/all/lam-50/seed-1", "gates/all/dsp-6/seed-1"),
    *("selected/all/lam-50/seed-1", "gates_from_scratch/enc_self/lam-50/seed-1"),
)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_models_and_tables_byte_for_byte(tiny_run: Path, tmp_path: Path) -> None:
    again, table = shutil.copytree(tiny_run, tmp_path / "again"), "results/tables/table_pruning.tsv"
    asked = ("--cores", "2", "--configfile", str(TINY), "--rerun-triggers", "params")
    for runs, others in ((BASELINE, ()), (AFTER, (table,))):
        made = [f"results/tiny/{run}/model.safetensors" for run in runs]
        made += [f"results/tiny/{run}/bleu.json" for run in runs if "gates" not in run]
        for name in made:
            (again / name).unlink()
        done = snakemake(again, *made, *others, *asked, hashes="7")
        assert done.returncode == 0, done.stdout[-3000:]
        for name in [*made, *others]:
            assert (again / name).stat().st_mtime > (tiny_run / name).stat().st_mtime, name
            assert (again / name).read_bytes() == (tiny_run / name).read_bytes(), name


@pytest.mark.slow
def test_every_score_travels_with_its_signature_and_every_model_with_its_commit(tiny_run: Path) -> None:
    scores = list(tiny_run.glob("results/tiny/**/bleu.json"))
    # unpruned, 3 + 5 pruned and 4 of their units, 1 scratch, 8 cut out and fine-tuned, 1 penalised from the start
    assert len(scores) == 23
    for path in scores:
        assert "version:2.6.0" in read_json(path)["signature"]
        assert read_json(path.with_name("model.json"))["provenance"]["commit"]


@pytest.mark.slow
def test_nothing_unfinished_is_left_when_all_is_done(tiny_run: Path) -> None:
    left = [p for p in (tiny_run / "results").rglob("*") if p.name == "unfinished" or p.name.endswith(".part")]
    assert not left


@pytest.mark.slow
def test_the_report_holds_all_tables_and_figures(tiny_run: Path) -> None:
    done = snakemake(tiny_run, "--report", "report.html", "--configfile", str(TINY))
    assert done.returncode == 0, done.stdout[-3000:]
    page = (tiny_run / "report.html").read_text(encoding="utf-8")
    for name in [*FIGURES, *(f"table_{table}" for table in TABLES)]:
        assert name in page, name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("experiments: {demo: {gates: {updats: 3}}}", "demo.gates.updats is not a setting. Did you mean updates?"),
        ("run: demo", "write run=[demo]"),
    ],
)
def test_wrong_settings_stop_before_the_first_job_with_one_sentence(fresh: Path, change: str, sentence: str) -> None:
    """The sentences themselves are tested in tests/config."""
    (fresh / "mine.yaml").write_text(change, encoding="utf-8")
    done = snakemake(fresh, "--cores", "1", "--configfile", "mine.yaml")
    assert done.returncode != 0
    assert sentence in done.stdout
    assert "Traceback" not in done.stdout
    assert not (fresh / "results").exists()


@pytest.mark.slow
def test_another_domain_is_measured_where_a_corpus_names_one_and_nowhere_else(fresh: Path) -> None:
    figure, table = "results/figures/{}/michel_fig2.png", "results/tables/table_corpus.tsv"
    far = planned(snakemake(fresh, figure.format("wmt-en-fr"), "-n").stdout)
    assert far["out_of_domain"] == far["ablation_out_of_domain"] == far["ablation"] == 1
    near = planned(snakemake(fresh, figure.format("demo"), "-n").stdout)
    counted = planned(snakemake(fresh, table, "-n", "--config", "run=[wmt-en-fr]").stdout)
    assert near["ablation"] == counted["corpus"] == 1
    assert not {"out_of_domain", "ablation_out_of_domain"} & {*near, *counted}
    assert far["encode"] == near["encode"] + 1
    refused = snakemake(fresh, "results/demo/baseline/seed-1/ablation.out_of_domain.tsv", "-n")
    assert refused.returncode != 0 and "corpora.demo has no out-of-domain test set" in refused.stdout

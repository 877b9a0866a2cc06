"""An experiment in parts: planned and packed by Snakemake, run without it, its table made of what was brought back."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from checkouts import ROOT, TINY, checkout, snakemake
from heads.base.files import read_json, read_tsv, read_yaml, write_text
from warm_python import warm_python

pytestmark = pytest.mark.slow

NOTHING: dict[str, list[str]] = {"methods": [], "budgets": []}
SWEEP = {
    "lambdas": {"enc_self": [], "all": [50]},
    "budgets": {"enc_self": [], "all": []},
    "selection": {**NOTHING, "fine_tuned": NOTHING},
    "gates_from_scratch_scopes": [],
    "trained_on_scopes": [],
}
TABLE = "results/tables/table_pruning.tsv"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with the tiny experiment, one lambda of it."""
    folder = checkout(tmp_path_factory.mktemp("clone"))
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks")
    content = read_yaml(TINY)
    content["experiments"]["tiny"] |= {"sweep": SWEEP}
    content["experiments"]["tiny"]["roles"]["trees"] = ["gold"]
    write_text(folder / "one.yaml", yaml.safe_dump(content))
    return folder


def script(clone: Path, name: str, *words: str) -> tuple[int, str]:
    """Run one of the scripts in a clone and return its exit status and output."""
    environment = {**os.environ, "PYTHONPATH": f"{clone / 'workflow'}:{clone / 'benchmarks'}", "OMP_NUM_THREADS": "1"}
    command = [warm_python(), f"benchmarks/gpu/{name}.py", *words]
    done = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, timeout=900)
    return done.returncode, done.stdout + done.stderr


def test_an_experiment_is_packed_run_in_parts_and_its_table_made_at_home(clone: Path) -> None:
    assert script(clone, "pack", "pack", TABLE, "--configfile", "one.yaml")[0] == 0
    packed = clone / "pack"
    rules = [job["rule"] for job in read_json(packed / "jobs.json")]
    assert sorted(rules) == sorted(["baseline", *["gates", "pruned"] * 2, "scratch", *["score"] * 4])
    for words, expected in ((("baseline", "--seconds", "0"), 3), (("scratch", "pruned"), 0)):
        status, said = script(clone, "story", "pack", *words, "--device", "cpu")
        assert status == expected, said[-3000:]
    scores = {row["run"]: row for row in read_tsv(packed / "story/scores.tsv")}
    assert len(scores) == 4 and scores["tiny/pruned/all/lam-50/seed-1"]["enc_self"] < "4"
    # Without any weights, from what was brought back alone.
    with tarfile.open(packed / "small.tar.gz") as small:
        small.extractall(clone, filter="data")
    assert not list((clone / "results/tiny/baseline").rglob("*.safetensors"))
    done = snakemake(clone, "--cores", "1", "--allowed-rules", "table", "--configfile", "one.yaml", "--", TABLE)
    assert done.returncode == 0, done.stdout[-3000:]
    assert [row["kind"] for row in read_tsv(clone / TABLE)] == ["baseline", "pruned", "pruned"]
    # With weights, nothing is left to be done.
    shutil.rmtree(clone / "results/tiny")
    shutil.copytree(packed / "results", clone / "results", dirs_exist_ok=True)
    left = snakemake(clone, "-n", "--rerun-triggers", "mtime", "--configfile", "one.yaml", "--", TABLE)
    assert left.returncode == 0 and "rule baseline" not in left.stdout and "rule gates" not in left.stdout


def test_a_file_that_needs_a_choice_among_trained_models_is_refused_in_one_sentence(clone: Path) -> None:
    target = "results/tiny/selected/all/example_layer-6/seed-1/bleu.json"
    status, said = script(clone, "pack", "other", target, "--configfile", "one.yaml")
    assert status == 1 and "which is made of trained models: leave it out." in said and "Traceback" not in said

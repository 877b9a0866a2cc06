"""The job that made each result, as read from Snakemake's metadata and from logs."""

from __future__ import annotations

import base64
import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

from heads.base.files import write_text
from heads.base.lineage import jobs
from heads.base.provenance import COMMIT, MARK, PACKAGES, machine, provenance, record, recorded

COMMANDS = {"gates": """python -m heads gates --settings '{"gates": {"updates": 7}}' --seed 2 > 'a log' 2>&1"""}
FOLDER = "results/x/ж>>>???/" + "a-long-name/" * 30


def kept(rule: str, output: str, *inputs: str, commit: str | None = None, **more: Any) -> None:
    """Write a result, its log and its Snakemake metadata (long names go to folders that begin with @)."""
    log = f"{output}.log"
    made_by = {"commit": commit, "changed_since_commit": False, "torch": "2.13.0", "python": "3.11.7", **more}
    write_text(Path(log), f"some words\n{MARK}{json.dumps(made_by)}\n" if commit else "some words\n")
    write_text(Path(output), rule)
    name = base64.urlsafe_b64encode(output.encode()).decode()
    *folders, last = (name[at : at + 200] for at in range(0, len(name), 200))
    told = {
        "rule": rule,
        "input": inputs,
        "log": [log],
        "shellcmd": COMMANDS.get(rule, f"run {rule}"),
        "starttime": 1.0,
        "endtime": 4.0,
    }
    write_text(Path(".snakemake/metadata", *(f"@{part}" for part in folders), last), json.dumps(told))


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table made from two scores, each of one model; both models come from one corpus."""
    monkeypatch.chdir(tmp_path)
    write_text(Path("text"), "given")
    kept("corpus", f"{FOLDER}corpus", "text", commit="c" * 40)
    for seed in (1, 2):
        kept(
            "gates",
            f"{FOLDER}model{seed}",
            f"{FOLDER}corpus",
            commit="c" * 40,
            seed=seed,
            device="cuda:1 a GPU",
            machine="x86",
        )
        kept("score", f"{FOLDER}score{seed}", f"{FOLDER}model{seed}", commit="c" * 40, device="cpu")
    kept("table", f"{FOLDER}table", f"{FOLDER}score1", f"{FOLDER}score2", commit="c" * 40)


@pytest.mark.parametrize(("told", "changed"), [("a" * 40, False), ("a" * 40 + "+", True)])
def test_code_that_was_copied_without_its_history_is_told_its_commit(
    monkeypatch: pytest.MonkeyPatch, told: str, *, changed: bool
) -> None:
    monkeypatch.setenv(COMMIT, told)
    made_by = provenance()
    assert (made_by["commit"], made_by["changed_since_commit"]) == ("a" * 40, changed)
    monkeypatch.delenv(COMMIT)
    monkeypatch.setattr("heads.base.provenance._git", lambda *_: "")
    assert (provenance()["commit"], provenance()["changed_since_commit"]) == ("unknown", False)


def test_each_file_has_the_job_that_made_it_however_long_its_path_is() -> None:
    made = jobs()
    assert {name.rpartition("/")[2]: job.rule for name, job in made.items()} == {
        **{"corpus": "corpus", "model1": "gates", "model2": "gates", "score1": "score", "score2": "score"},
        "table": "table",
    }
    job = made[f"{FOLDER}model2"]
    assert (job.inputs, job.log) == ((f"{FOLDER}corpus",), f"{FOLDER}model2.log")
    assert (job.command, job.settings) == (COMMANDS["gates"], {"gates": {"updates": 7}})
    assert (job.started, job.ended) == (1, 4)
    assert (job.record["seed"], job.record["device"]) == (2, "cuda:1 a GPU")
    assert made[f"{FOLDER}table"].settings == {}, "its command has none"


def test_code_that_was_changed_is_marked() -> None:
    kept("score", f"{FOLDER}score1", f"{FOLDER}model1", commit="c" * 40, changed_since_commit=True)
    codes = {name: jobs()[f"{FOLDER}{name}"].code for name in ("score1", "score2")}
    assert codes == {"score1": "commit cccccccccccc and changes on it", "score2": "commit cccccccccccc"}


def test_a_model_that_came_from_the_cache_and_has_no_log_is_told_of_by_its_own_facts() -> None:
    output = f"{FOLDER}seed-9/model.safetensors"
    kept("baseline", output, "text")
    origin = {"commit": "f" * 40, "changed_since_commit": False, "seed": 9}
    write_text(Path(output).with_name("model.json"), json.dumps({"provenance": origin}))
    kept("score", f"{FOLDER}seed-9/bleu.json", output)
    made = jobs()
    assert (made[output].code, made[output].record["seed"]) == ("commit ffffffffffff", 9)
    assert made[f"{FOLDER}seed-9/bleu.json"].code == "commit not recorded"


def test_the_line_that_a_job_leaves_in_its_log_is_read_back(tmp_path: Path) -> None:
    line = record(seed=3, device="cpu", threads=2, processes=None)
    write_text(tmp_path / "log", f"{MARK}{{}}\nwords\n{line}\n")
    found = recorded(tmp_path / "log")
    assert found == {**provenance(), **machine(), "seed": 3, "device": "cpu", "threads": 2}
    assert set(PACKAGES) < set(found) and len(found["commit"]) == 40
    assert recorded(tmp_path / "none") == {}


def test_a_machine_is_told_by_its_processor_and_its_cores() -> None:
    found = machine()
    said = subprocess.run(["grep", "-c", "^processor", "/proc/cpuinfo"], capture_output=True, text=True, timeout=60)
    assert not said.stdout or found["cores"] == int(said.stdout)
    assert found["machine"] == platform.machine() and len(found["processor"]) > 2
    assert ":" not in found["processor"] and found["processor"] == found["processor"].strip()

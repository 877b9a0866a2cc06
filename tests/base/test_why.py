"""How a result was made, as read from Snakemake's metadata and from logs."""

from __future__ import annotations

import base64
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from checkouts import ROOT
from heads.__main__ import main
from heads.base.files import write_text
from heads.base.lineage import ancestors, changed_after, jobs
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
    for path in (Path("text"), *Path("results").rglob("*")):
        os.utime(path, (1000, 1000))


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


def test_all_that_is_behind_a_file_is_found_once_and_the_nearest_first() -> None:
    made = jobs()
    found = [(name.rpartition("/")[2], job.rule if job else None) for name, job in ancestors(f"{FOLDER}table", made)]
    assert found == [
        *(("score1", "score"), ("score2", "score"), ("model1", "gates"), ("model2", "gates")),
        *(("corpus", "corpus"), ("text", None)),
    ]


def told(capsys: pytest.CaptureFixture[str], path: str) -> list[str]:
    """The lines that `why` prints, with long folders left out."""
    assert main(["why", path]) == 0
    return [line.rstrip() for line in capsys.readouterr().out.replace(FOLDER, "").splitlines()]


MADE = f"  made     {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(4.0))} in 3 s by the rule"


def test_a_person_is_told_code_versions_device_seed_settings_and_command(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, f"{FOLDER}model2")
    assert lines == [
        "model2",
        f"{MADE} gates",
        "  code     commit cccccccccccc",
        "  with     python 3.11.7, torch 2.13.0",
        "  on       cuda:1 a GPU, x86",
        "  seed     2",
        "  settings gates:",
        "             updates: 7",
        f"  command  {COMMANDS['gates']}",
        "  log      model2.log",
        "",
        "made of, the nearest first (rule, files, code, device, seeds)",
        "  corpus          corpus; commit cccccccccccc",
        "  no rule         text",
    ]


def test_a_table_tells_the_seeds_and_devices_behind_it(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, f"./{FOLDER}table")
    assert "  seed     none of its own" in lines
    assert lines[lines.index("made of, the nearest first (rule, files, code, device, seeds)") + 1 :] == [
        "  score           score1, score2; commit cccccccccccc; cpu",
        "  gates           model1, model2; commit cccccccccccc; cuda:1 a GPU; seed 1, 2",
        "  corpus          corpus; commit cccccccccccc",
        "  no rule         text",
    ]


def test_of_many_files_and_seeds_the_first_four_are_named_and_the_rest_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for seed in (10, 3, 4, 5, 6):
        kept("gates", f"{FOLDER}model{seed}", "text", commit="c" * 40, seed=seed, device="cpu")
    kept("table", f"{FOLDER}wide", *(f"{FOLDER}model{seed}" for seed in (1, 2, 10, 3, 4, 5, 6)), commit="c" * 40)
    os.utime(f"{FOLDER}wide", (2e9, 2e9))
    line = next(line for line in told(capsys, f"{FOLDER}wide") if line.startswith("  gates "))
    assert line == (
        "  gates           model1, model2, model10, model3 and 3 more; commit cccccccccccc; cpu, cuda:1 a GPU; "
        "seed 1, 2, 3, 4 and 3 more"
    )


def test_code_that_was_changed_is_marked_and_noted(capsys: pytest.CaptureFixture[str]) -> None:
    kept("score", f"{FOLDER}score1", f"{FOLDER}model1", commit="c" * 40, changed_since_commit=True)
    for name in ("score1", "table"):
        os.utime(f"{FOLDER}{name}", (2000, 2000))
    lines = told(capsys, f"{FOLDER}score1")
    assert "  code     commit cccccccccccc and changes on it" in lines
    assert lines[-2:] == [
        "note: made by different states of the code: commit cccccccccccc, commit cccccccccccc and changes on it",
        "note: made by code that is in no commit",
    ]
    assert told(capsys, f"{FOLDER}score2")[-1].startswith("  no rule")


def test_what_lies_in_a_folder_that_was_made_as_a_whole_was_made_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    kept("baseline", f"{FOLDER}checkpoints", "text", commit="e" * 40)
    Path(f"{FOLDER}checkpoints").unlink()
    write_text(Path(f"{FOLDER}checkpoints/checkpoint-00000003.safetensors"), "weights")
    lines = told(capsys, f"{FOLDER}checkpoints/checkpoint-00000003.safetensors")
    assert lines[:3] == ["checkpoints", f"{MADE} baseline", "  code     commit eeeeeeeeeeee"]


def test_a_model_that_came_from_the_cache_and_has_no_log_is_told_of_by_its_own_facts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = f"{FOLDER}seed-9/model.safetensors"
    kept("baseline", output, "text")
    origin = {"commit": "f" * 40, "changed_since_commit": False, "seed": 9}
    write_text(Path(output).with_name("model.json"), json.dumps({"provenance": origin}))
    lines = told(capsys, output)
    assert "  code     commit ffffffffffff" in lines and "  seed     9" in lines
    kept("score", f"{FOLDER}seed-9/bleu.json", output)
    assert "  code     commit not recorded" in told(capsys, f"{FOLDER}seed-9/bleu.json")


def test_inputs_that_changed_since_and_code_that_differs_are_noted(capsys: pytest.CaptureFixture[str]) -> None:
    kept("score", f"{FOLDER}score1", f"{FOLDER}model1", commit="d" * 40, device="cpu")
    Path(f"{FOLDER}score2").unlink()
    assert changed_after(f"{FOLDER}table", jobs()) == [f"{FOLDER}score1", f"{FOLDER}score2"]
    assert main(["why", f"{FOLDER}table"]) == 0
    said = capsys.readouterr().out
    assert f"note: changed since it was made, or gone: {FOLDER}score1, {FOLDER}score2" in said
    assert "note: made by different states of the code: commit cccccccccccc, commit dddddddddddd" in said


@pytest.mark.parametrize("path", ["results/none", "text", ""])
def test_a_file_that_no_job_made_is_told_in_one_sentence(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", path]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ") and path in said and said.count("\n") == 1


def test_a_reader_who_has_seen_enough_is_no_error() -> None:
    command = f"{shlex.quote(sys.executable)} -m heads why {shlex.quote(FOLDER)}table | true"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow")}
    done = subprocess.run(
        command, shell=True, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stderr == ""


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

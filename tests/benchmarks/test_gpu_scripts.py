"""The GPU scripts on a CPU: they measure something, plan what Snakemake plans, and stop and resume in time."""

import os
import shlex
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import measuring
import pytest
import speed
import story as stories
import torch
from pack import Job, carried, planned
from story import Story

from checkouts import ROOT
from heads.base.files import UserError, read_tsv, write_json, write_text


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run a script as its README says, but in this process, and return its exit status."""

    def run(name: str, *words: str) -> int:
        path = os.pathsep.join(str(ROOT / folder) for folder in ("workflow", "benchmarks"))
        for variable, value in (("PYTHONPATH", path), ("OMP_NUM_THREADS", "1"), ("HEADS_COMMIT", "c" * 40 + "+")):
            monkeypatch.setenv(variable, value)
        monkeypatch.setattr(sys, "argv", [f"benchmarks/gpu/{name}.py", *words])
        monkeypatch.syspath_prepend(ROOT / "tests/devices")
        return int(import_module(name).main() or 0)

    return run


def table(path: Path) -> dict[str, dict[str, str]]:
    """The rows of a table, keyed by their first column."""
    return {next(iter(row.values())): row for row in read_tsv(path)}


@pytest.mark.slow
def test_what_a_gpu_is_and_how_fast_it_trains_and_translates_is_told_with_a_peer_beside_it(
    tmp_path: Path, script: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert script("speed", str(tmp_path), "--small", "--device", "cpu") == 0
    known = table(tmp_path / "speed/about.tsv")
    assert known["commit"]["value"] == "c" * 40 and known["changed_since_commit"]["value"] == "True"
    assert known["device"]["value"] == "cpu" and "speed.py" in known["command"]["value"]
    rates = table(tmp_path / "speed/rates.tsv")
    assert len(rates) == 3 and all(float(row["rate"]) > 0 for row in rates.values())
    for row in read_tsv(tmp_path / "speed/attention.tsv"):
        assert float(row["ms"]) > 0 and 0 < int(row["sentences"]) < int(row["subwords"]) and not row["error"]
    operators = table(tmp_path / "speed/operators.tsv")
    assert {"aten::mm", "aten::addmm"} <= {*operators}
    assert sum(float(row["share"]) for row in operators.values()) == pytest.approx(1, abs=0.3)
    assert "operators.tsv" in capsys.readouterr().out
    ended = {row["ended"] for row in read_tsv(tmp_path / "speed/tests.tsv")}
    assert ended == {"skipped"} or torch.cuda.is_available()
    ours, theirs = rows_of(tmp_path / "speed/training.tsv")
    assert len(ours) == len({(row["batch tokens"], row["gates"]) for row in ours}) == 4
    for row in ours:
        assert 0 < float(row["share"]) < 1 and float(row["padding"]) == 0, "nothing is filled up on a CPU"
    assert [row["model"] for row in theirs] == ["Marian with cuDNN", "Marian"]
    assert all(0 < float(row["padding"]) < 1 for row in theirs)
    assert all(float(row["target tokens/s"]) > 0 for row in (*ours, *theirs))
    assert float(read_tsv(tmp_path / "speed/translating.tsv")[0]["subwords"]) > 0


def rows_of(path: Path) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The rows of our trainings and of the others."""
    rows = read_tsv(path)
    return [row for row in rows if row["model"] == "ours"], [row for row in rows if row["model"] != "ours"]


def test_sentences_are_as_long_as_those_of_a_text_that_is_given(tmp_path: Path) -> None:
    text, place = tmp_path / "bpe", tmp_path / "place"
    for folder in (text, place):
        folder.mkdir()
    given = measuring.random_pairs(measuring.SMALL, text)
    for side, name in (("source", "source"), ("target", "target")):
        (text / name).rename(text / f"train.{side}.safetensors")
    found = measuring.random_pairs(measuring.SMALL, place, text)
    assert found.source.lengths.tolist() == given.source.lengths.tolist()
    assert found.target.lengths.tolist() == given.target.lengths.tolist()


SAID = """Building DAG of jobs...
[Sun Nov 22 02:08:00 2026]
rule corpus:
    input: results/downloads/a.zip
    output: results/corpora/c/train.txt
    log: results/corpora/c/log/corpus.txt
Shell command: python -m heads corpus --out-folder results/corpora/c > results/corpora/c/log/corpus.txt 2>&1
[Sun Nov 22 02:08:00 2026]
rule baseline:
    input: results/corpora/c/train.txt, results/x/settings/baseline.yaml
    output: results/x/baseline/seed-1/model.safetensors, results/x/baseline/seed-1/model.json
    log: results/x/baseline/seed-1/log/baseline.txt
    jobid: 4
Shell command: python -m heads baseline --model 'results/x/a b' --threads 1 > results/l 2>&1
[Sun Nov 22 02:08:00 2026]
rule confidence:
    input: results/x/baseline/seed-1/model.safetensors, workflow/heads/analysis/confidence.py
    output: results/x/baseline/seed-1/confidence.tsv
    log: results/x/baseline/seed-1/log/confidence.txt
Shell command: python -m heads confidence --out results/x/baseline/seed-1/confidence.tsv > results/l 2>&1
[Sun Nov 22 02:08:00 2026]
localrule tables:
    input: results/x/baseline/seed-1/confidence.tsv
"""


def test_the_plan_is_what_snakemake_printed_and_a_gpu_is_given_what_it_needs_alone() -> None:
    jobs = list(planned(SAID))
    assert [job.rule for job in jobs] == ["corpus", "baseline", "confidence"]
    assert jobs[1].words == ("-m", "heads", "baseline", "--model", "results/x/a b", "--threads", "1")
    assert jobs[1].outputs == tuple(f"results/x/baseline/seed-1/model.{kind}" for kind in ("safetensors", "json"))
    assert jobs[1].log == "results/x/baseline/seed-1/log/baseline.txt"
    there, files = carried(jobs)
    assert there == jobs[1:]
    assert files == ["results/corpora/c/train.txt", "results/x/settings/baseline.yaml"]


def test_what_needs_something_that_is_made_of_trained_models_elsewhere_is_refused() -> None:
    chosen = Job("selection", ("results/x/baseline/seed-1/confidence.tsv",), ("heads.tsv",), "log", ())
    more = Job("compared", ("heads.tsv",), ("compared.tsv",), "log", ())
    trained = Job("selected", ("compared.tsv",), ("model.safetensors",), "log", ())
    jobs = list(planned(SAID))
    assert carried([*jobs, chosen])[0] == jobs[1:]
    with pytest.raises(UserError, match=r"^model.safetensors needs compared.tsv, which is made of trained models"):
        carried([*jobs, chosen, more, trained])


WORK = """
import os, pathlib, sys, time
out, seconds, *inputs = sys.argv[1:sys.argv.index("--")]
assert all(pathlib.Path(path).exists() for path in inputs)
pathlib.Path(out).write_text(f"{time.monotonic()}")
time.sleep(float(seconds))
pathlib.Path(out + ".end").write_text(f"{time.monotonic()}")
told = [os.environ["HEADS_COMMIT"], *sys.argv]
pathlib.Path(out + ".told").write_text(" ".join(told))
print("said by", out)
sys.exit("bad" in out)
"""
TRAIN = """
import pathlib, signal, sys, time
state, out = pathlib.Path("state"), pathlib.Path("model.safetensors")
def stop(*_):
    state.write_text("saved")
    sys.exit(1)
signal.signal(signal.SIGTERM, stop)
pathlib.Path("started").write_text("")
time.sleep(0 if state.exists() else 60)
out.write_text("weights")
"""


def work(rule: str, out: str, *inputs: str, seconds: float = 0.0) -> Job:
    """A job that checks its inputs and writes its output."""
    return Job(rule, inputs, (out,), f"log/{out}.txt", ("-c", WORK, out, str(seconds), *inputs, "--"))


def packed(folder: Path, *jobs: Job) -> Path:
    """A folder as pack.py makes it."""
    write_json(folder / "jobs.json", [asdict(job) for job in jobs])
    write_text(folder / "commit", "c" * 40)
    return folder


def done(folder: Path, *words: str, seconds: float = 100) -> dict[str, str]:
    """How each job ended in one further call, in the order in which they ran."""
    story = Story(folder, "cpu")
    story.run(story.left(words), seconds)
    return {row["job"]: row["ended"] for row in story.rows if row["call"] == story.call}


def test_jobs_run_in_the_order_of_the_words_each_after_what_it_needs_and_once(tmp_path: Path) -> None:
    names = ("a", "late-b", "c", "d")
    packed(
        tmp_path, work("baseline", "a"), work("gates", "late-b", "a"), work("pruned", "c"), work("score", "d", "late-b")
    )
    assert list(done(tmp_path, "d", seconds=0)) == []
    assert list(done(tmp_path, "d", "c")) == ["a", "late-b", "d", "c"]
    assert done(tmp_path) == {}
    told = (tmp_path / "late-b.told").read_text(encoding="utf-8").split()
    assert told[0] == "c" * 40 and told[-4:] == ["--save-every-seconds", "600", "--device", "cpu"]
    assert "--device" not in (tmp_path / "c.told").read_text(encoding="utf-8"), "pruned knows no device"
    assert (tmp_path / "log/late-b.txt").read_text(encoding="utf-8") == "said by late-b\n"
    rows = read_tsv(tmp_path / "story/jobs.tsv")
    assert sorted(row["job"] for row in rows) == sorted(names) and {row["ended"] for row in rows} == {"done"}


def test_jobs_that_run_together_wait_for_what_they_need_alone(tmp_path: Path) -> None:
    packed(
        tmp_path, work("baseline", "a", seconds=1.5), work("gates", "b", "a"), work("gates", "c", seconds=1.5),
        work("score", "d"), work("gates", "bad"), work("pruned", "e", "bad"),
    )  # fmt: skip
    story = Story(tmp_path, "cpu")
    story.run(story.left(), 100, together=2)
    assert {row["job"]: row["ended"] for row in story.rows} == dict.fromkeys("abcd", "done") | {"bad": "failed"}
    began, ended = ({name: float((tmp_path / f"{name}{end}").read_text()) for name in "abcd"} for end in ("", ".end"))
    assert began["c"] < ended["a"] and began["a"] < ended["c"], "two run at once"
    assert began["b"] > ended["a"] and began["d"] > min(ended["a"], ended["c"]), "a third one waits"
    assert story.left()[0].outputs == ("bad",)


def test_what_no_word_names_comes_last_as_it_was_planned(tmp_path: Path) -> None:
    packed(tmp_path, *(work("gates", f"{scope}-lam-{lam}") for lam in (1, 2, 3) for scope in ("enc", "all")))
    expected = ["enc-lam-3", "all-lam-3", "enc-lam-1", "enc-lam-2", "all-lam-1", "all-lam-2"]
    assert list(done(tmp_path, "lam-3", "enc")) == expected


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a package in `site`, which is on PYTHONPATH as the README says: by a path from there."""
    write_text(tmp_path / "site/brought.py", "import heads\n")
    write_text(tmp_path / "site/heads.py", "raise ImportError('not the clone')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", os.path.relpath(ROOT / "workflow"), "site"]))
    return tmp_path


def test_a_job_finds_the_clone_first_and_then_the_packages_that_were_brought_along(brought: Path) -> None:
    (brought / "pack").mkdir()
    packed(brought / "pack", Job("pruned", (), ("a",), "log.txt", ("-c", "import brought")))
    assert done(brought / "pack") == {"a": "done"}


@pytest.mark.usefixtures("brought")
def test_the_tests_of_a_gpu_find_the_packages_that_were_brought_along(monkeypatch: pytest.MonkeyPatch) -> None:
    run, ended = subprocess.run, []

    def instead(_: list[str], **how: Any) -> None:
        ended.append(run([sys.executable, "-c", "import brought"], **how).returncode)
        raise TimeoutError

    monkeypatch.setattr(speed.subprocess, "run", instead)
    with pytest.raises(TimeoutError):
        speed.tests()
    assert ended == [0]


def test_a_job_that_fails_stops_none_but_those_that_need_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed(tmp_path, work("gates", "bad"), work("pruned", "a", "bad"), work("gates", "b"))
    assert done(tmp_path) == {"bad": "failed", "b": "done"}
    assert "said by bad" in capsys.readouterr().out
    assert done(tmp_path) == {"bad": "failed"}, "it is tried again, what is done is not"


def test_a_training_is_stopped_when_the_time_is_up_saves_and_goes_on_in_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock jumps once the training runs, so the test passes on slow machines too."""
    training = Job("baseline", (), ("model.safetensors",), "log/train.txt", ("-c", TRAIN))
    packed(tmp_path, training, work("baseline", "late"))

    def clock() -> float:
        return time.monotonic() + 1000 * (tmp_path / "started").exists()

    with monkeypatch.context() as patch:
        patch.setattr(stories, "time", SimpleNamespace(monotonic=clock, sleep=time.sleep))
        assert done(tmp_path) == {"model.safetensors": "stopped"}
    assert (tmp_path / "state").exists() and not (tmp_path / "model.safetensors").exists()
    assert done(tmp_path) == {"model.safetensors": "done", "late": "done"}


def test_what_is_brought_home_is_all_but_weights(tmp_path: Path) -> None:
    made = Job("gates", (), ("run/model.safetensors", "run/heads.tsv", "run/missing.tsv"), "run/log.txt", ())
    for name in (*made.outputs[:2], made.log):
        write_text(tmp_path / name, name)
    with tarfile.open(stories.archive(tmp_path, [made])) as whole:
        assert whole.getnames() == ["run/heads.tsv", "run/log.txt"]


def test_scores_and_speeds_are_those_of_the_files(tmp_path: Path) -> None:
    job = Job("score", (), ("results/x/run/bleu.json", "results/x/run/train.jsonl"), "log", ())
    heads = {"enc_self": [[0, 2], []], "dec_self": [[1], [0, 1]], "dec_enc": [[], [2]]}
    facts: dict[str, Any] = {"shape": {"live_heads": heads}, "total_updates": 9, "dev_loss": 2.5}
    assert stories.scores(tmp_path, [job]) == [] == stories.speeds(tmp_path, [job])
    write_json(tmp_path / "results/x/run/bleu.json", {"bleu": 31.5, "signature": "13a"})
    write_json(tmp_path / "results/x/run/model.json", facts)
    log = '{"update": 4, "updates": 9, "loss": 3.0, "dev_loss": 2.75, "source_tokens_per_second": 500}\n'
    write_text(tmp_path / "results/x/run/unfinished/train.jsonl", log)
    (score,) = stories.scores(tmp_path, [job])
    expected = {"run": "x/run", "enc_self": 2, "dec_self": 3, "dec_enc": 1, "bleu": 31.5, "total_updates": 9}
    assert {name: score[name] for name in expected} == expected
    (speed,) = stories.speeds(tmp_path, [job])
    assert speed["source_tokens_per_second"] == 500 and speed["updates"] == 9


def readme_commands() -> list[str]:
    """The commands of the README that name one of the scripts."""
    text = (ROOT / "benchmarks/gpu/README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if line.startswith("python benchmarks/gpu/")]


@pytest.mark.parametrize("command", readme_commands())
def test_every_command_of_the_readme_has_flags_that_its_script_knows(
    command: str, script: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    path, *words = shlex.split(command)[1:]
    with pytest.raises(SystemExit):
        script(Path(path).stem, "--help")
    known = {word.strip(",[]") for word in capsys.readouterr().out.split()}
    assert "--help" in known and {word for word in words if word.startswith("--")} <= known


def test_the_readme_names_every_script_and_no_other() -> None:
    named = {shlex.split(command)[1].rpartition("/")[2] for command in readme_commands()}
    assert named == {path.name for path in (ROOT / "benchmarks/gpu").glob("*.py")} - {"kernels.py", "measuring.py"}


@pytest.mark.slow
def test_operations_are_counted_without_a_device() -> None:
    """In a process of its own, as the device that has only a name is known to torch for the rest of a process."""
    path = os.pathsep.join(str(ROOT / folder) for folder in ("workflow", "benchmarks", "tests/devices"))
    command = [sys.executable, str(ROOT / "benchmarks/gpu/operations.py"), "--small"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    names, *rows = (line.split("\t") for line in done.stdout.splitlines()[:-1])
    found = {(row[0], row[1]): dict(zip(names[2:], map(int, row[2:]), strict=True)) for row in rows}
    assert len(found) == 4
    for row in found.values():
        assert row["operations"] == sum(row.values()) - row["operations"] and row["attention"] == 6
        # one layer each side: q, k, v, output, two of feed-forward; cross-attention has one more; the projection
        assert row["products"] >= 3 * (4 + 7)
    assert found["adam", "none"]["operations"] < found["adam", "all"]["operations"] < found["muon", "all"]["operations"]
    assert 0 < float(done.stdout.split()[-2]) < 30

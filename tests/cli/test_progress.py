"""The line of progress by its numbers: what is planned and done, what each job weighs, and how long the rest takes."""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest

from heads.base.files import UserError, write_lines, write_tsv, write_yaml
from heads.cli import progress as module
from heads.cli.progress import Progress, clock, follow, run, show

PLAN = """Building DAG of jobs...
Job stats:
job          count
---------  -------
baseline         1
gates            3
scratch          2
selected         2
encode           6
total           14

Select jobs to execute...
"""
UPDATES = {"baseline": 2000, "gates": 400, "scratch": 2400}
WHOLE = 2000 + 3 * 400 + 2 * 2400 + 2 * 400 + 6 * 40
"""A model chosen by other means is trained for as long as gates."""


@pytest.fixture
def progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Progress:
    """Two minutes after the start."""
    for name in ("baseline", "gates", "scratch"):
        write_yaml(tmp_path / f"demo/settings/{name}.yaml", {name: {"updates": UPDATES[name]}})
    write_yaml(tmp_path / "demo/settings/selected.yaml", {"training": {"updates": 1}, "selected": {"updates": 400}})
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    made = Progress(tmp_path)
    monkeypatch.setattr(time, "monotonic", lambda: now + 120.4)
    for line in PLAN.splitlines():
        made.read(line)
    return made


def finish(progress: Progress, **jobs: int) -> None:
    """As Snakemake tells of jobs that ended."""
    for rule, count in jobs.items():
        for number in range(count):
            progress.read(f"Finished jobid: {number} (Rule: {rule})")


def log_of(progress: Progress, run: str, *updates: int, of: int, age: float = 0.0) -> None:
    """The log of a training, as old as that in seconds."""
    path = progress.results / run / "unfinished/train.jsonl"
    write_lines(path, [json.dumps({"update": update, "updates": of}) for update in updates])
    os.utime(path, (time.time() - age,) * 2)


def test_the_plan_is_read_and_a_later_one_takes_its_place(progress: Progress) -> None:
    assert dict(progress.planned) == {"baseline": 1, "gates": 3, "scratch": 2, "selected": 2, "encode": 6}
    for line in ("Job stats:", "job  count", "gates  2", "total  2", "encode  9"):
        progress.read(line)
    assert dict(progress.planned) == {"gates": 2}


def test_a_training_weighs_its_updates_and_every_other_job_as_a_few(progress: Progress) -> None:
    weights = {rule: progress.weight(rule) for rule in progress.planned}
    assert weights == {**UPDATES, "selected": 400, "encode": 40}


def test_the_line_tells_share_jobs_time_left_and_what_is_to_be_trained(progress: Progress) -> None:
    assert progress.line() == (
        "[2:00]    0%  0/14 jobs  time left not known yet  to train: 1 baseline, 3 gates, 2 scratch, 2 selected"
    )
    finish(progress, encode=6, baseline=1, gates=1)
    done = 6 * 40 + 2000 + 400
    left = 120.4 * (WHOLE - done) / done
    assert progress.line() == (
        f"[2:00]   {100 * done / WHOLE:.0f}%  8/14 jobs  about {clock(left)} left  "
        "to train: 2 gates, 2 scratch, 2 selected"
    )
    finish(progress, gates=2, scratch=2, selected=2)
    assert progress.line() == "[2:00]  100%  14/14 jobs  about 0:00 left"


def test_trainings_that_run_now_count_by_their_last_update_and_old_logs_do_not(progress: Progress) -> None:
    finish(progress, encode=6, baseline=1)
    log_of(progress, "demo/gates/all/lam-0/seed-1", 25, 250, of=400)
    log_of(progress, "demo/scratch/all/lam-0.1/seed-1", 600, of=2400, age=250)
    log_of(progress, "demo/scratch/all/lam-0.2/seed-1", 2000, of=2400, age=400)
    log_of(progress, "demo/gates/all/lam-1/seed-1", of=400)
    share = (6 * 40 + 2000 + 250 + 600) / WHOLE
    line = progress.line()
    assert line.startswith(f"[2:00]   {share:.0%}  7/14 jobs  about {clock(120.4 * (1 - share) / share)} left  ")
    assert line.endswith("now: demo/gates/all/lam-0/seed-1 250/400; demo/scratch/all/lam-0.1/seed-1 600/2400")


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (9.9, "0:09"), (60, "1:00"), (3725, "62:05")])
def test_seconds_are_told_as_minutes_and_seconds(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


def test_what_snakemake_says_goes_to_the_log_and_its_last_lines_to_a_person_when_it_fails(results: Path) -> None:
    progress, code = Progress(results), "import sys; [print('line', n) for n in range(50)]; sys.exit({})"
    follow([sys.executable, "-c", code.format(0)], progress)
    with pytest.raises(UserError, match="Snakemake stopped with status 3") as told:
        follow([sys.executable, "-c", code.format(3)], progress)
    lines = [f"line {n}" for n in range(50)]
    assert (results / "snakemake.txt").read_text(encoding="utf-8").splitlines() == lines * 2
    assert str(told.value).splitlines()[1:] == lines[10:]


def test_what_follow_reads_is_counted(results: Path) -> None:
    progress = Progress(results)
    told = f"{PLAN}\nFinished jobid: 3 (Rule: gates)\nError in rule score:\n"
    follow([sys.executable, "-c", f"print({told!r})"], progress)
    assert (progress.planned["encode"], dict(progress.finished), progress.failed) == (6, {"gates": 1}, 1)


COLUMNS = (*module.SHOWN, "dev_loss")


def pruning_table(results: Path) -> None:
    values = [[f"{name[:5]}{row}" for name in COLUMNS] for row in (1, 22)]
    rows = [dict(zip(COLUMNS, line, strict=True)) for line in values]
    write_tsv(results / "tables/table_pruning.tsv", rows, COLUMNS)


def test_the_pruning_table_is_shown_in_columns_of_one_width(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pruning_table(results)
    show(results / "tables/table_pruning.tsv")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        list(module.SHOWN), *([f"{name[:5]}{row}" for name in module.SHOWN] for row in (1, 22))]  # fmt: skip
    assert len({len(line) for line in lines}) == 1


def test_a_run_is_snakemake_to_the_end_then_its_report_then_the_table(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pruning_table(results)
    asked: list[list[str]] = []
    monkeypatch.setattr(module, "follow", lambda command, progress: asked.append(command[2:]))
    run(Namespace(cores="5", snakemake=["--config", "run=[demo]"]))
    first = ["snakemake", "--cores", "5", "--config", "run=[demo]"]
    assert asked == [first, [*first, "--report", str(results / "report.html")]]
    said = capsys.readouterr().out
    assert "exper22" in said
    assert said.index("bleu_control") < said.index(f"tables   {results}/tables")

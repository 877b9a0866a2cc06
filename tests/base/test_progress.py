"""The numbers of the progress line: planned and finished jobs, the weight of each, and the time left."""

import contextlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from logging import LogRecord, makeLogRecord
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import yaml
from snakemake_interface_logger_plugins.common import LogEvent

from heads.base import progress as module
from heads.base.files import UserError, read_yaml, write_lines, write_text, write_tsv
from heads.base.progress import Progress, clock, follow, show, tick
from heads.cli.progress import run

PLAN = {"baseline": 1, "gates": 3, "scratch": 2, "selected": 2, "encode": 6, "total": 14}
UPDATES = {"baseline": 2000, "gates": 400, "scratch": 2400}
WHOLE = 2000 + 3 * 400 + 2 * 2400 + 2 * 400 + 6 * 15
"""Total work planned; a model selected by another method is trained for as long as gates."""


def event(kind: LogEvent, **told: object) -> LogRecord:
    """An event as Snakemake logs it: its kind and fields next to the message."""
    return makeLogRecord({"msg": "some text", "levelno": logging.INFO, "event": kind, **told})


@pytest.fixture
def progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Progress:
    """Progress two minutes after the start."""
    for name in ("baseline", "gates", "scratch"):
        write_lines(tmp_path / f"demo/{name}/x/train.jsonl", [json.dumps({"update": 9, "updates": UPDATES[name]})])
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    made = Progress(tmp_path)
    monkeypatch.setattr(time, "monotonic", lambda: now + 120.4)
    made.read(event(LogEvent.RUN_INFO, stats=PLAN))
    return made


def finish(progress: Progress, **jobs: int) -> None:
    """Log jobs that start, fail once, are retried and end, as Snakemake does."""
    for rule, count in jobs.items():
        numbers = range(len(progress.rules), len(progress.rules) + count)
        for number in numbers:
            progress.read(event(LogEvent.JOB_INFO, jobid=number, rule_name=rule))
        progress.read(event(LogEvent.JOB_ERROR, jobid=numbers[0], rule_name=rule))
        progress.read(event(LogEvent.JOB_STARTED, jobs=[*numbers]))
        for number in numbers:
            progress.read(event(LogEvent.JOB_FINISHED, job_id=number))


def log_of(progress: Progress, run: str, *updates: int, of: int, age: float = 0.0) -> None:
    """Write the log of a training, `age` seconds old."""
    path = progress.results / run / "unfinished/train.jsonl"
    write_lines(path, [json.dumps({"update": update, "updates": of}) for update in updates])
    os.utime(path, (time.time() - age,) * 2)


def test_what_else_snakemake_says_is_neither_plan_nor_end_of_a_job(progress: Progress) -> None:
    before = progress.line()
    progress.read(makeLogRecord({"msg": "Finished jobid: 3 (Rule: gates)"}))
    for kind in {*LogEvent} - {LogEvent.RUN_INFO, LogEvent.JOB_INFO, LogEvent.JOB_FINISHED}:
        progress.read(event(kind, jobid=3, job_id=3, rule_name="gates", stats={"gates": 1}, done=1, total=2, jobs=[3]))
    assert progress.line() == before


def test_the_line_tells_share_jobs_time_left_and_what_is_to_be_trained(progress: Progress) -> None:
    assert progress.line() == (
        "[2:00]    0%  0/14 jobs  time left not known yet  to train: 1 baseline, 3 gates, 2 scratch, 2 selected"
    )
    finish(progress, encode=6, baseline=1, gates=1)
    done = 6 * 15 + 2000 + 400
    left = 120.4 * (WHOLE - done) / done
    assert progress.line() == (
        f"[2:00]   {100 * done / WHOLE:.0f}%  8/14 jobs  about {clock(left)} left  "
        "to train: 2 gates, 2 scratch, 2 selected"
    )
    finish(progress, gates=2, scratch=2, selected=2)
    assert progress.line() == "[2:00]  100%  14/14 jobs  about 0:00 left"


def test_the_time_left_runs_down_until_more_is_known_to_be_done(
    progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(progress, encode=6, baseline=1)
    share = (6 * 15 + 2000) / WHOLE
    left, now = 120.4 * (1 - share) / share, time.monotonic()
    for later in (0, 61):
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        assert f"  about {clock(left - later)} left  " in progress.line()
    finish(progress, gates=1)
    more = (6 * 15 + 2000 + 400) / WHOLE
    assert f"  about {clock(181.4 * (1 - more) / more)} left  " in progress.line()


def test_no_time_is_told_by_the_pace_of_what_comes_before_the_first_training(progress: Progress) -> None:
    progress.read(event(LogEvent.RUN_INFO, stats={"baseline": 1, "encode": 6, "total": 7}))
    finish(progress, encode=6)
    assert "    4%  6/7 jobs  time left not known yet  to train: 1 baseline" in progress.line()  # 90 of 2,090
    progress.read(event(LogEvent.RUN_INFO, stats={"encode": 24, "total": 24}))
    assert "6/24 jobs  about 6:01 left" in progress.line()


def test_trainings_that_run_now_count_by_their_last_update_and_old_logs_do_not(progress: Progress) -> None:
    finish(progress, encode=6, baseline=1)
    log_of(progress, "demo/gates/all/lam-0/seed-1", 25, 250, of=400)
    log_of(progress, "demo/scratch/all/lam-0.1/seed-1", 600, of=2400, age=250)
    log_of(progress, "demo/scratch/all/lam-0.2/seed-1", 2000, of=2400, age=400)
    log_of(progress, "demo/gates/all/lam-1/seed-1", of=400)
    share = (6 * 15 + 2000 + 250 + 600) / WHOLE
    line = progress.line()
    assert line.startswith(f"[2:00]   {share:.0%}  7/14 jobs  about {clock(120.4 * (1 - share) / share)} left  ")
    assert line.endswith("now: demo/gates/all/lam-0/seed-1 250/400; demo/scratch/all/lam-0.1/seed-1 600/2400")


@pytest.mark.parametrize(("cores", "rest"), [(2, (3 * 400 + 6 * 15 + 460) / 2), (8, 460)], ids=str)
def test_the_time_is_told_before_the_first_job_by_the_pace_of_updates(
    progress: Progress, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cores: int, rest: float
) -> None:
    """The baseline has its own pace and nothing beside it; no number of cores makes the longest job shorter."""
    monkeypatch.setenv(module.PACE, f"0.5 0.3 {cores}")
    begun = Progress(progress.results)
    begun.read(event(LogEvent.RUN_INFO, stats={"baseline": 1, "gates": 3, "encode": 6, "ablation": 1, "total": 11}))
    seconds = 2000 * 0.3 + 0.5 * rest
    assert capsys.readouterr().out == f"On this machine this takes about {round(seconds / 60)} minutes.\n"
    assert f"  about {clock(seconds)} left  " in begun.line()
    finish(begun, encode=6)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 61)
    assert f"  about {clock(seconds - 61)} left  " in begun.line()
    begun.read(event(LogEvent.RUN_INFO, stats={"total": 0}))
    assert capsys.readouterr().out == ""


def test_a_training_that_a_run_did_not_ask_for_neither_counts_nor_is_told(progress: Progress) -> None:
    before = progress.line()
    log_of(progress, "demo/gates_from_scratch/all/lam-0/seed-1", 250, of=400)
    assert progress.line() == before


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (9.9, "0:09"), (60, "1:00"), (3725, "62:05")])
def test_seconds_are_told_as_minutes_and_seconds(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


def of_snakemake(folder: Path, monkeypatch: pytest.MonkeyPatch, snakefile: str) -> None:
    (folder / "Snakefile").write_text(snakefile, encoding="utf-8")
    monkeypatch.chdir(folder)


EARLIER = "At least one job did not complete successfully"
FAILING = {
    "rule a:\n output: 'a'\n shell: 'echo the reason >&2; exit 7'\n": ("Error in rule a", "\nthe reason\n", EARLIER),
    "from snakemake.exceptions import WorkflowError\nraise WorkflowError('a short one')\n": ("a short one",),
    "import sys\nfor n in range(50):\n  print('line', n, file=sys.stderr)\nraise ValueError('one sentence')\n": (
        "one sentence",
    ),
}
"""Snakefiles that fail, and what is said then."""


def test_what_snakemake_says_goes_to_the_log_and_its_last_lines_to_a_person_when_it_fails(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for snakefile, words in FAILING.items():
        of_snakemake(results.parent, monkeypatch, snakefile)
        with pytest.raises(UserError, match=r"status 1; its output is in \S+snakemake\.txt") as told:
            follow(["--logger", "heads", "--cores", "1"])
        said = str(told.value)
        assert all(word in said for word in words)
        assert (EARLIER in said) == (EARLIER in words), "nothing of an earlier run"
    log = (results / "snakemake.txt").read_text(encoding="utf-8").splitlines()
    assert EARLIER in "\n".join(log) and {f"line {n}" for n in range(50)} <= {*log}
    assert said.splitlines()[1:] == log[-40:]


STOPPED = """
rule last:
    input: "first"
    output: "last"
    shell: "touch last"
rule first:
    output: "first"
    shell: "touch begun; sleep 3; touch first"
"""


@pytest.mark.slow
def test_a_term_lets_the_running_job_end_and_starts_no_other(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_snakemake(results.parent, monkeypatch, STOPPED)
    begun, handler = results.parent / "begun", signal.getsignal(signal.SIGTERM)

    def stop() -> None:
        while not begun.exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop, daemon=True).start()
    with pytest.raises(UserError, match="Snakemake stopped with status 1"):
        follow(["--cores", "1"])
    assert (results.parent / "first").exists() and not (results.parent / "last").exists()
    assert signal.getsignal(signal.SIGTERM) is handler
    follow(["--cores", "1"])
    assert (results.parent / "last").exists(), "no lock is left"
    assert "1 of 1 steps (100%) done" in (results / "snakemake.txt").read_text(encoding="utf-8")


WAITING = """
rule all:
    input: "b"
rule encode:
    output: "a"
    shell: "touch a"
rule gates:
    input: "a"
    output: "b"
    shell: "for _ in $(seq 600); do [ -e go ] && break; sleep 0.1; done; touch b"
"""


@pytest.mark.slow
@pytest.mark.parametrize("quiet", [[], ["--quiet", "rules"]])
def test_snakemake_itself_draws_the_line_on_a_terminal_and_clears_it(
    results: Path, monkeypatch: pytest.MonkeyPatch, quiet: list[str]
) -> None:
    of_snakemake(results.parent, monkeypatch, WAITING)
    code = f"from heads.base.progress import follow; follow({['--logger', 'heads', '--cores', '1', *quiet]})"
    screen, terminal = os.openpty()
    job = subprocess.Popen([sys.executable, "-c", code], stdout=terminal, stderr=terminal)
    os.close(terminal)
    seen = ""
    try:
        with contextlib.suppress(OSError):  # a closed terminal raises this at the end
            while chunk := os.read(screen, 1000).decode():
                seen += chunk
                if "1/3 jobs" in seen:
                    (results.parent / "go").touch()
        assert job.wait(60) == 0
    finally:
        job.kill()
        job.wait(20)
        os.close(screen)
    lines = seen.split("\r\033[K")
    assert lines[0] == lines[-1] == ""
    told = re.compile(
        r"\[0:\d\d\] +\d+%  \d/[03] jobs  (time left not known yet|about \d+:\d\d left)(  to train: 1 gates)?"
    )
    assert all(told.fullmatch(line) for line in lines[1:-1]), lines
    assert re.search(r"   3%  1/3 jobs  time left not known yet  to train: 1 gates", seen)  # 15 of 15 + 15 + 400


@pytest.mark.parametrize(("seconds", "said"), [(2, "\r\033[Kone\r\033[Ktwo\r\033[K"), (30, "one\ntwo\n")])
def test_a_line_is_rewritten_in_place_on_a_terminal_and_new_every_half_minute_elsewhere(
    seconds: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: seconds == 2)
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) > 2

    words = iter(["one", "two"])
    tick(cast(Progress, SimpleNamespace(line=lambda: next(words))), cast(threading.Event, SimpleNamespace(wait=wait)))
    assert (capsys.readouterr().out, waits) == (said, [seconds] * 3)


COLUMNS = (*module.SHOWN, "dev_loss")


def pruning_table(results: Path) -> None:
    values = [[f"{name[:5]}{row}" for name in COLUMNS] for row in (1, 22)]
    rows = [dict(zip(COLUMNS, line, strict=True)) for line in values]
    write_tsv(results / "tables/table_pruning.tsv", rows, COLUMNS)


def test_the_pruning_table_is_shown_in_columns_of_one_width(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pruning_table(results)
    show(results / "tables/table_pruning.tsv")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:-1]] == [
        [*COLUMNS[:-1]], *([f"{name[:5]}{row}" for name in COLUMNS[:-1]] for row in (1, 22))]  # fmt: skip
    assert len({len(line) for line in lines[:-1]}) == 1
    assert lines[-1].startswith("BLEU against the again1 or the again22 is fidelity")


@pytest.mark.parametrize("against", [("references", "references"), ("unpruned model", "references")])
def test_a_table_says_at_its_end_whether_a_score_is_fidelity(
    results: Path, capsys: pytest.CaptureFixture[str], against: tuple[str, str]
) -> None:
    rows = [{**dict.fromkeys(COLUMNS, "1"), "against": one} for one in (*against, "")]
    write_tsv(results / "tables/table_pruning.tsv", rows, COLUMNS)
    show(results / "tables/table_pruning.tsv")
    head, *told = capsys.readouterr().out.splitlines()
    assert [line.rpartition("  ")[2].strip() for line in told[:2]] == [*against] and head.endswith("against")
    said = ["BLEU against the unpruned model is fidelity: how close to its output, not how good."]
    assert told[3:] == (said if "unpruned model" in against else [])


def test_columns_that_no_model_has_are_not_shown(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Translation models have neither Matthews' correlation nor a majority label."""
    lacking = dict.fromkeys(("matthews", "majority"), "")
    rows = [{**dict.fromkeys(COLUMNS, "1"), **lacking, "score_scratch": cell} for cell in ("", "2")]
    write_tsv(results / "tables/table_pruning.tsv", rows, COLUMNS)
    show(results / "tables/table_pruning.tsv")
    assert capsys.readouterr().out.split("\n")[0].split() == [name for name in module.SHOWN if name not in lacking]


@pytest.mark.slow
def test_the_updates_of_an_experiment_are_timed_before_snakemake_begins(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own, with the sizes of that experiment: a model ten times as wide takes far longer."""
    config = read_yaml(Path(__file__).parents[2] / "config.yaml")
    small = {"batch_tokens": 200, "micro_batch_tokens": 200}
    for name, width in (("narrow", 8), ("wide", 400)):
        config["experiments"][name] = {
            "bpe": {"source_subwords": 50, "target_subwords": 50},
            "model": {"layers": 1, "heads": 2, "width": width, "feedforward": 2 * width},
            "training": small,
            "baseline": {"updates": 36000},
        }
    write_text(results.parent / "config.yaml", yaml.safe_dump(config))
    monkeypatch.chdir(results.parent)
    told: list[str | None] = []
    monkeypatch.setattr(module, "follow", lambda words: told.append(os.environ.pop(module.PACE, None)))
    for name in ("narrow", "wide"):
        run(expect=name, alone=2, cores="3")
    narrow, wide = (list(map(float, (told[call] or "").split())) for call in (0, 1))
    assert narrow[2] == wide[2] == 3
    assert 0 < 2 * narrow[0] < wide[0] < 60 and narrow[1] > 0
    assert module.timed("unknown", 1, "all", needs_gpu=True) == "", "Snakemake says what is wrong"
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 4})
    assert module.timed("narrow", 1, "all").split()[2:] == ["5"]
    with pytest.raises(
        UserError, match=r"^wide needs a GPU, and torch sees none: here the 36000 updates of .* hours\.$"
    ) as said:
        module.timed("wide", 1, "all", needs_gpu=True)
    hours = int(str(said.value).split()[-2])
    assert 0.2 * wide[0] < hours / 10 < 5 * wide[0]
    write_text(results.parent / "config.yaml", yaml.safe_dump(config | {"experiment": {}}))
    assert module.timed("narrow", 1, "all") == ""


def test_a_run_is_snakemake_with_its_report_then_the_table(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pruning_table(results)
    asked: list[list[str]] = []
    monkeypatch.setattr(module, "follow", asked.append)
    run(["--config", "run=[demo]"], cores="5")
    report = ["--report", str(results / "report.html"), "--report-after-run"]
    paced = ["--logger", "heads", "--max-jobs-per-timespan", "1000/5s"]
    assert asked == [[*paced, *report, "--cores", "5", "--config", "run=[demo]"]]
    said = capsys.readouterr().out
    assert "exper22" in said
    assert said.index("score_control") < said.index(f"tables   {results}/tables")

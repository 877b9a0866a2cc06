"""The progress of Snakemake, for a person: one line with what remains, and the pruning table at the end.

Work is measured in updates. How many a training has, and how many are done, is read from the logs of trainings, and
guessed while there are none; every other job counts as some. The time left is estimated from the pace so far, or first
from that of a few updates that were timed before.

Snakemake runs as a process of its own, whose output goes to a log. The line is drawn in that process, by the logger
plugin `snakemake_logger_plugin_heads`, from the events that Snakemake passes to such plugins.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from logging import LogRecord
from pathlib import Path

from heads.base.files import UserError, read_jsonl, read_tsv
from heads.base.names import REFERENCES

OTHER_JOBS = {"ablation": 460, "speed": 390, "parser_model": 380, "lrp": 250, "masking_curve": 180}
OTHER_JOB = 15
"""The weight of a job that is not a training, in updates of a training: as measured in the demo, of these rules and of
any other.
"""
FIRST = "baseline"
"""The rule that nearly all others wait for."""
PACE = "HEADS_PACE"
"""Environment variable with the seconds of an update with one thread and with those of `FIRST`, and the cores."""

TRAININGS = {
    "baseline": ("baseline", 1500),
    "imported": ("baseline", 1500),
    "gates": ("gates", 400),
    "scratch": ("scratch", 1900),
    "selected": ("selected", 400),
    "gates_from_scratch": ("gates_from_scratch", 1900),
}
"""Rules that train, the folder of their runs, and the number of updates assumed before one is logged: the demo's."""
RESULTS = Path("results")
LINES_ON_FAILURE = 40
SHOWN = (
    *("experiment", "kind", "scope", "lam", "keep", "seed", "enc_self", "dec_self", "dec_enc", "total", "metric"),
    *("score", "matthews", "score_scratch", "score_control", "score_baseline", "majority", "against"),
)
"""Columns of the pruning table that are printed at the end, except empty ones."""


class Progress:
    """What is known about a run: jobs by rule, those finished, and the progress of trainings."""

    def __init__(self, results: Path) -> None:
        self.results, self.started = results, time.monotonic()
        self.planned: Counter[str] = Counter()
        self.rules: dict[int, str] = {}
        self.finished: Counter[str] = Counter()
        self.pace = [float(word) for word in os.environ.get(PACE, "").split()]
        self.last = 0, 0.0
        """The work that is known to be done, and the seconds when it last grew."""

    def read(self, record: LogRecord) -> None:
        """Record one event of Snakemake: the plan, the start of a job with its rule, or a job that succeeded."""
        event = vars(record)
        match event.get("event"):
            case "run_info":
                self.planned = Counter({rule: jobs for rule, jobs in event["stats"].items() if rule != "total"})
                if self.pace and self.planned:
                    print(
                        f"On this machine this takes about {max(1, round(self.expected() / 60))} minutes.", flush=True
                    )
            case "job_info":
                self.rules[event["jobid"]] = event["rule_name"]
            case "job_finished":
                self.finished[self.rules[event["job_id"]]] += 1

    def weight(self, rule: str) -> int:
        """The weight of one job of a rule, in updates; for a training, as logged by any one of that rule."""
        if rule not in TRAININGS:
            return OTHER_JOBS.get(rule, OTHER_JOB)
        folder, guess = TRAININGS[rule]
        for path in self.results.glob(f"*/{folder}/**/train.jsonl"):
            if records := read_jsonl(path):
                return int(records[-1]["updates"])
        return guess

    def expected(self) -> float:
        """Seconds from the first job to the last by the pace of updates alone, before anything is known."""
        one, first, cores = self.pace
        work = {rule: self.weight(rule) * count for rule, count in self.planned.items()}
        alone = work.pop(FIRST, 0)
        return alone * first + one * max([sum(work.values()) / cores, *map(self.weight, work)])

    def running(self) -> Iterator[tuple[str, int, int]]:
        """Name, updates done and updates planned of every training that wrote to its log recently."""
        for path in sorted(self.results.glob("*/**/unfinished/train.jsonl")):
            if time.time() - path.stat().st_mtime < 300 and (records := read_jsonl(path)):
                name = path.parent.parent.relative_to(self.results)
                yield str(name), int(records[-1]["update"]), int(records[-1]["updates"])

    def line(self) -> str:
        """Jobs done, share of the work, time left, trainings to come, and trainings running now."""
        planned, finished = self.planned, self.finished.copy()  # events come in meanwhile, from another thread
        total = sum(self.weight(rule) * count for rule, count in planned.items())
        done = sum(self.weight(rule) * count for rule, count in finished.items())
        # A run with other targets may have left some unfinished.
        trainings = [training for training in self.running() if training[0].split("/")[1] in planned]
        done += sum(update for _, update, _ in trainings)
        seconds = time.monotonic() - self.started
        if done != self.last[0]:
            self.last = done, seconds
        share = min(done / total, 1.0) if total else 0.0
        # Jobs before a training take longer than their weight, so their pace says nothing about trainings.
        begun = bool(trainings) or any(finished[rule] for rule in TRAININGS) or not planned.keys() & TRAININGS.keys()
        known = begun and share > 0.03
        guess = self.expected() - seconds if self.pace and not known else self.last[1] / max(share, 1e-9) - seconds
        left = f"about {clock(max(guess, 0.0))} left" if known or self.pace else "time left not known yet"
        rest = [f"{n - finished[r]} {r}" for r, n in planned.items() if r in TRAININGS and n > finished[r]]
        now = "; ".join(f"{name} {update}/{updates}" for name, update, updates in trainings)
        jobs = f"{sum(finished.values())}/{sum(planned.values())} jobs"
        parts = [f"[{clock(seconds)}]", f"{share:4.0%}", jobs, left]
        parts += [f"to train: {', '.join(rest)}"] if rest else []
        parts += [f"now: {now}"] if now else []
        return "  ".join(parts)


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def timed(experiment: str, alone: int, cores: str, *, needs_gpu: bool = False) -> str:
    """The content of `PACE` for an experiment, timed by a process that ends before Snakemake begins.

    Empty if there is a GPU, or if the settings are wrong. Raises UserError if it needs a GPU, and there is none.
    """
    words = [sys.executable, "-m", "heads.training.trial", experiment, *(() if needs_gpu else "1"), str(alone)]
    said = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    updates, seconds = json.loads(said) if said else (0, [])
    if not seconds:
        return ""
    if needs_gpu:
        raise UserError(
            f"{experiment} needs a GPU, and torch sees none: here the {updates} updates of its unpruned model alone "
            f"would take about {updates * seconds[0] / 3600:.0f} hours."
        )
    return " ".join([*map(str, seconds), str(len(os.sched_getaffinity(0))) if cores == "all" else cores])


def follow(words: list[str]) -> None:
    """Run Snakemake with these arguments; its output goes to a log, and its line of progress to standard output.

    A SIGTERM stops Snakemake once its running jobs have ended. Raises UserError with the end of the output if it fails.
    """
    log = RESULTS / "snakemake.txt"
    with log.open("ab+") as stream:
        start = stream.tell()
        process = subprocess.Popen([sys.executable, "-m", "snakemake", *words], stderr=stream)
        # Otherwise Snakemake would continue, and keep its lock, when the process that started it is killed.
        before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        try:
            status = process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise UserError("Stopped: run the same command again to resume.") from None
        finally:
            signal.signal(signal.SIGTERM, before)
        stream.seek(start)
        said = stream.read().decode("utf-8", "replace").splitlines()
    if status:
        last = "\n".join(said[-LINES_ON_FAILURE:])
        raise UserError(f"Snakemake stopped with status {status}; its output is in {log}, which ends with:\n{last}")


def tick(progress: Progress, ended: threading.Event) -> None:
    """Show the line: rewritten every few seconds on a terminal, else as a new line every half minute."""
    terminal = sys.stdout.isatty()
    while not ended.wait(2 if terminal else 30):
        line = progress.line()
        print(f"\r\033[K{line}" if terminal else line, end="" if terminal else "\n", flush=True)
    if terminal:
        print("\r\033[K", end="")


def show(table: Path) -> None:
    """Print the main columns of the pruning table, aligned, and a note on scores that are not against references."""
    read = read_tsv(table)
    shown = [name for name in SHOWN if any(row[name] for row in read)]
    lines = [shown, *([row[name] for name in shown] for row in read)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(map(str.rjust, line, widths)))
    if others := {row["against"] for row in read} - {REFERENCES, ""}:
        print(f"BLEU against the {' or the '.join(sorted(others))} is fidelity: how close to its output, not how good.")

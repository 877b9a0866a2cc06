"""Run the jobs of a folder from pack.py on a GPU, within a time limit and resumable.

Run: PYTHONPATH=workflow python benchmarks/gpu/story.py FOLDER [WORD...] [--seconds 520] [--together 1]. Jobs whose
first output has a word in its name come first, in the order of the words, each after the jobs that it needs; then come
all others. When the time is up, a training saves its state and stops; the same command resumes it, and starts other
unfinished jobs again.
Results are in FOLDER/results as Snakemake would write them; FOLDER/story has tables of jobs and scores, and
FOLDER/small.tar.gz has everything but weights.
"""

import argparse
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring import about, environment, write
from pack import BESIDE, Job

from heads.base.files import UserError, read_json, read_jsonl, read_tsv
from heads.base.names import ATTENTIONS
from heads.base.provenance import COMMIT
from heads.training.devices import JOBS_A_GPU, pick

TRAININGS = ("baseline", "gates", "gates_from_scratch", "scratch", "selected")
GRACE_SECONDS = 50
"""The time that trainings have to save their states after they are asked to stop."""
DONE, STOPPED, FAILED = "done", "stopped", "failed"


class Story:
    """The jobs of a folder: all, those that are done and the one that is running."""

    def __init__(self, folder: Path, device: str) -> None:
        self.folder, self.device = folder, device
        self.jobs = [
            Job(job["rule"], tuple(job["inputs"]), tuple(job["outputs"]), job["log"], tuple(job["words"]))
            for job in read_json(folder / "jobs.json")
        ]
        self.table = folder / "story/jobs.tsv"
        self.rows: list[dict[str, Any]] = list(read_tsv(self.table)) if self.table.exists() else []
        self.call = 1 + max((int(row["call"]) for row in self.rows), default=0)

    @property
    def missing(self) -> set[str]:
        """The output files of jobs that are not done."""
        done = {row["job"] for row in self.rows if row["ended"] == DONE}
        return {path for job in self.jobs if job.outputs[0] not in done for path in job.outputs}

    def left(self, words: Sequence[str] = ()) -> list[Job]:
        """The unfinished jobs: those with a word in the name of their first output in the order of the words, and what
        each of them needs before it; then all others, as they were planned.
        """
        missing = self.missing
        makes = {path: job for job in self.jobs for path in job.outputs}
        ordered: dict[Job, None] = {}

        def add(job: Job) -> None:
            """Add a job after those that it needs."""
            for path in job.inputs:
                if path in missing and path in makes:
                    add(makes[path])
            ordered.setdefault(job)

        for word in (*words, ""):
            for job in self.jobs:
                if word in job.outputs[0] and job.outputs[0] in missing:
                    add(job)
        return list(ordered)

    def run(self, waiting: Sequence[Job], seconds: float, together: int = 1) -> None:
        """Run jobs in their order, several at once, until the time is up; what needs a failed one is left out."""
        deadline, left, running = time.monotonic() + seconds, list(waiting), list[Running]()
        while True:
            if time.monotonic() < deadline:
                missing = self.missing
                ready = [job for job in left if not missing & {*job.inputs}][: together - len(running)]
                running += [self.started(job, together) for job in ready]
                left = [job for job in left if job not in ready]
            if not running:
                return
            time.sleep(0.1)
            running = [each for each in running if not self.ended(each, deadline)]

    def started(self, job: Job, together: int) -> "Running":
        """Start a job as Snakemake would, one of several on a GPU."""
        log = self.folder / job.log
        log.parent.mkdir(parents=True, exist_ok=True)
        words = [*job.words, *(["--save-every-seconds", "600"] if job.rule in TRAININGS else [])]
        words += [] if job.rule in BESIDE else ["--device", self.device]
        given = {COMMIT: (self.folder / "commit").read_text(encoding="utf-8")}
        given[JOBS_A_GPU] = os.environ.get(JOBS_A_GPU, str(together))
        print(f"started {job.rule} {job.outputs[0]}", flush=True)
        with log.open("ab") as said:
            process = subprocess.Popen(
                [sys.executable, *words], cwd=self.folder, env=environment(OMP_NUM_THREADS="1", **given), stdout=said,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
        return Running(job, process, time.monotonic())

    def ended(self, running: "Running", deadline: float) -> bool:
        """Whether a job is over, and write it down if so; after the deadline, ask it to stop, and then kill it."""
        if running.process.poll() is None:
            if running.stopped and time.monotonic() > running.stopped + GRACE_SECONDS:
                running.process.kill()
            elif time.monotonic() > deadline and not running.stopped:
                running.process.send_signal(signal.SIGTERM)
                running.stopped = time.monotonic()
            return False
        job, ended = running.job, DONE if running.process.returncode == 0 else STOPPED if running.stopped else FAILED
        spent = round(time.monotonic() - running.started, 1)
        self.rows.append({"call": self.call, "rule": job.rule, "job": job.outputs[0], "seconds": spent, "ended": ended})
        print(f"{ended} {job.rule} {job.outputs[0]} after {spent} s", flush=True)
        if ended == FAILED:
            print((self.folder / job.log).read_text(encoding="utf-8", errors="replace")[-2000:], flush=True)
        write(self.table, self.rows)
        return True


@dataclass
class Running:
    """A job that was started, and when it was asked to stop."""

    job: Job
    process: subprocess.Popen[bytes]
    started: float
    stopped: float = 0.0


def scores(folder: Path, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """A row for every scored model: heads by kind, BLEU, and how it was trained."""
    rows = []
    for place in sorted({(folder / path).parent for job in jobs for path in job.outputs if path.endswith("bleu.json")}):
        if (place / "bleu.json").exists():
            facts, bleu = read_json(place / "model.json"), read_json(place / "bleu.json")
            heads = {kind: sum(map(len, facts["shape"]["live_heads"][kind])) for kind in ATTENTIONS}
            shown = {name: facts[name] for name in ("total_updates", "dev_loss")}
            run = str(place.relative_to(folder / "results"))
            rows.append({"run": run, **heads, "bleu": bleu["bleu"], **shown, "signature": bleu["signature"]})
    return rows


def speeds(folder: Path, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """The last logged source tokens per second of every training."""
    rows = []
    for job in jobs:
        for path in [folder / path for path in job.outputs if path.endswith("train.jsonl")]:
            unfinished = path.parent / "unfinished" / path.name
            logs = [log for log in (path, unfinished) if log.exists()]
            if logs and (records := list(read_jsonl(logs[0]))):
                shown = ("update", "updates", "loss", "dev_loss", "source_tokens_per_second")
                rows.append({"training": str(path.parent.relative_to(folder)), **{n: records[-1][n] for n in shown}})
    return rows


def archive(folder: Path, jobs: Sequence[Job]) -> Path:
    """Pack everything that the jobs wrote, except weights, into one small file."""
    path = folder / "small.tar.gz"
    with tarfile.open(path, "w:gz") as whole:
        for name in sorted({name for job in jobs for name in (*job.outputs, job.log)}):
            if (folder / name).is_file() and not name.endswith(".safetensors"):
                whole.add(folder / name, name)
    return path


def main() -> int:
    """Run as much as the time allows; exit status 1 if a job failed, 3 if there is more to do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="what pack.py made")
    parser.add_argument("words", nargs="*", metavar="WORD", help="jobs with it in what they write come first")
    parser.add_argument("--seconds", type=float, default=520, help="when to stop; saving takes up to 50 more")
    parser.add_argument("--together", type=int, default=1, help="the number of jobs that run at once")
    parser.add_argument("--device", default="auto", help="as for every command")
    flags = parser.parse_args()
    try:
        story = Story(flags.folder.resolve(), flags.device)
        os.environ[COMMIT] = (story.folder / "commit").read_text(encoding="utf-8")
    except (UserError, OSError) as error:
        print(f"error: {flags.folder} is no folder that pack.py made ({error}): make it first.", file=sys.stderr)
        return 1
    story.run(story.left(flags.words), flags.seconds, flags.together)
    folder = story.folder / "story"
    write(folder / f"about.{story.call}.tsv", about(pick(flags.device, 1)))
    for name, rows in (("scores", scores(story.folder, story.jobs)), ("speeds", speeds(story.folder, story.jobs))):
        if rows:
            write(folder / f"{name}.tsv", rows)
    print(f"{archive(story.folder, story.jobs).stat().st_size / 1e6:.1f} MB in small.tar.gz")
    left = story.left(flags.words)
    for job in left:
        wanting = ", ".join(sorted(story.missing & {*job.inputs}))
        print(f"left: {job.rule} {job.outputs[0]}" + f", which needs {wanting}" * bool(wanting))
    failed = any(row["ended"] == FAILED for row in story.rows if row["call"] == story.call)
    return 1 if failed else 3 if left else 0


if __name__ == "__main__":
    sys.exit(main())

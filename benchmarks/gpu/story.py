"""Run the jobs of a folder from pack.py on a GPU, one part at a time, within a time limit and resumable.

Run: PYTHONPATH=workflow python benchmarks/gpu/story.py FOLDER PART [--only WORD...] [--side-by-side 4] [--seconds 520].
Parts are baseline, gates, scratch and measures. When the time is up, trainings save their state and stop; the same
command resumes them, and starts other unfinished jobs again. `--side-by-side` is the number of jobs that share the GPU.
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
from pathlib import Path
from typing import Any

from measuring import about, environment, write
from pack import BESIDE, Job

from heads.base.files import UserError, read_json, read_jsonl, read_tsv
from heads.base.names import ATTENTIONS
from heads.base.provenance import COMMIT
from heads.training.devices import JOBS_A_GPU, pick

PARTS = {
    "baseline": ("baseline",),
    "gates": ("gates", "pruned", "penalty_gates", "penalty_scratch"),
    "scratch": ("scratch", "selected"),
}
"""The rules of each part; all others belong to the part `measures`."""
TRAININGS = ("baseline", "gates", "penalty_gates", "scratch", "selected")
GRACE_SECONDS = 50
"""The time that trainings have to save their states after they are told to stop."""
DONE, STOPPED, FAILED = "done", "stopped", "failed"


class Story:
    """The jobs of a folder: all, those that are done and those that are running."""

    def __init__(self, folder: Path, device: str, side_by_side: int) -> None:
        self.folder, self.device, self.side_by_side = folder, device, side_by_side
        self.jobs = [
            Job(job["rule"], tuple(job["inputs"]), tuple(job["outputs"]), job["log"], tuple(job["words"]))
            for job in read_json(folder / "jobs.json")
        ]
        self.table = folder / "story/jobs.tsv"
        self.rows: list[dict[str, Any]] = list(read_tsv(self.table)) if self.table.exists() else []
        self.call = 1 + max((int(row["call"]) for row in self.rows), default=0)
        self.running: dict[Job, tuple[subprocess.Popen[bytes], float]] = {}
        """The process of each running job, and when it started."""

    @property
    def missing(self) -> set[str]:
        """The output files of jobs that are not done."""
        done = {row["job"] for row in self.rows if row["ended"] == DONE}
        return {path for job in self.jobs if job.outputs[0] not in done for path in job.outputs}

    def left(self, part: str, only: Sequence[str] = ()) -> list[Job]:
        """The unfinished jobs of a part; with `only`, those whose first output has one of these words in its name.

        They come in the order of the words, and for each word in the order in which they were planned.
        """
        others = [rule for rules in PARTS.values() for rule in rules]
        wanted = [job for job in self.jobs if (job.rule in PARTS[part] if part in PARTS else job.rule not in others)]
        chosen = [job for word in only or ("",) for job in wanted if word in job.outputs[0]]
        return [job for job in dict.fromkeys(chosen) if job.outputs[0] in self.missing]

    def run(self, waiting: list[Job], seconds: float) -> None:
        """Run jobs until all are done, none can start or the time is up."""
        deadline = time.monotonic() + seconds
        while (waiting or self.running) and time.monotonic() < deadline:
            missing = self.missing
            ready = [job for job in waiting if not missing & {*job.inputs}]
            for job in ready[: self.side_by_side - len(self.running)]:
                waiting.remove(job)
                self.start(job)
            if not self.running:
                break
            time.sleep(0.2)
            self.gather()
        self.stop()

    def start(self, job: Job) -> None:
        """Start a job as Snakemake would."""
        (self.folder / job.log).parent.mkdir(parents=True, exist_ok=True)
        words = [*job.words, *(["--save-every-seconds", "600"] if job.rule in TRAININGS else [])]
        words += [] if job.rule in BESIDE else ["--device", self.device]
        own = {JOBS_A_GPU: str(self.side_by_side), COMMIT: (self.folder / "commit").read_text(encoding="utf-8")}
        with (self.folder / job.log).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *words], cwd=self.folder, env=environment(OMP_NUM_THREADS="1", **own), stdout=log,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
        print(f"started {job.rule} {job.outputs[0]}", flush=True)
        self.running[job] = process, time.monotonic()

    def gather(self, *, stopped: bool = False) -> None:
        """Record the jobs that have ended, and print the end of the log of those that failed."""
        for job, (process, started) in [*self.running.items()]:
            if process.poll() is None:
                continue
            del self.running[job]
            ended = DONE if process.returncode == 0 else STOPPED if stopped else FAILED
            spent = round(time.monotonic() - started, 1)
            row = {"call": self.call, "rule": job.rule, "job": job.outputs[0], "seconds": spent, "ended": ended}
            self.rows.append(row | {"side by side": self.side_by_side})
            print(f"{ended} {job.rule} {job.outputs[0]} after {spent} s", flush=True)
            if ended == FAILED:
                print((self.folder / job.log).read_text(encoding="utf-8", errors="replace")[-2000:], flush=True)
            write(self.table, self.rows)

    def stop(self) -> None:
        """Ask the running jobs to stop, wait while they save their states, and kill those that do not end in time."""
        for process, _ in self.running.values():
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SECONDS
        while self.running and time.monotonic() < deadline:
            time.sleep(0.1)
            self.gather(stopped=True)
        for process, _ in self.running.values():
            process.kill()
            process.wait(30)
        self.gather(stopped=True)


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
    """The last logged source tokens per second of every training; for jobs side by side, that of each job alone."""
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
    """Run as much of a part as the time allows; exit status 1 if a job failed, 3 if there is more to do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="what pack.py made")
    parser.add_argument("part", choices=[*PARTS, "measures"])
    parser.add_argument("--seconds", type=float, default=520, help="when to stop; saving takes up to 50 more")
    parser.add_argument("--side-by-side", type=int, default=1, help="jobs at once")
    parser.add_argument("--only", nargs="+", default=[], help="jobs whose files have one of these words in their names")
    parser.add_argument("--device", default="auto", help="as for every command")
    flags = parser.parse_args()
    try:
        story = Story(flags.folder.resolve(), flags.device, flags.side_by_side)
        os.environ[COMMIT] = (story.folder / "commit").read_text(encoding="utf-8")
    except (UserError, OSError) as error:
        print(f"error: {flags.folder} is no folder that pack.py made ({error}): make it first.", file=sys.stderr)
        return 1
    story.run(story.left(flags.part, flags.only), flags.seconds)
    folder = story.folder / "story"
    write(folder / f"about.{story.call}.tsv", about(pick(flags.device, 1)))
    for name, rows in (("scores", scores(story.folder, story.jobs)), ("speeds", speeds(story.folder, story.jobs))):
        if rows:
            write(folder / f"{name}.tsv", rows)
    print(f"{archive(story.folder, story.jobs).stat().st_size / 1e6:.1f} MB in small.tar.gz")
    left = story.left(flags.part, flags.only)
    for job in left:
        wanting = ", ".join(sorted(story.missing & {*job.inputs}))
        print(f"left: {job.rule} {job.outputs[0]}" + f", which needs {wanting}" * bool(wanting))
    failed = any(row["ended"] == FAILED for row in story.rows if row["call"] == story.call)
    return 1 if failed else 3 if left else 0


if __name__ == "__main__":
    sys.exit(main())

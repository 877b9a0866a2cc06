"""Run Snakemake with a progress line, and print the pruning table at the end."""

import argparse
import os
import time

from heads.base import progress

LIMIT = "1000/5s"
"""By default Snakemake starts at most 100 jobs per second, and for that goes through all waiting jobs in every second,
once for each job that has ended: half a minute of computing for 200 jobs. Every five seconds, it is a fifth of that."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--cores", default="2", help="cores for Snakemake")
    parser.add_argument(
        "--expect", metavar="EXPERIMENT", help="first time a few of its updates, to say how long it takes"
    )
    parser.add_argument("--needs-gpu", action="store_true", help="end with one sentence if there is no GPU")
    parser.add_argument("--alone", type=int, default=1, help="threads of the baseline, which is trained alone")
    parser.add_argument("snakemake", nargs="*", help="further arguments for Snakemake, after --")


def run(arguments: argparse.Namespace) -> None:
    """Run Snakemake with a progress line and its report, and print the results and where they are."""
    progress.RESULTS.mkdir(exist_ok=True)
    if arguments.expect:
        os.environ[progress.PACE] = progress.timed(
            arguments.expect, arguments.alone, arguments.cores, needs_gpu=arguments.needs_gpu
        )
    started = time.monotonic()
    report = progress.RESULTS / "report.html"
    words = ["--logger", "heads", "--max-jobs-per-timespan", LIMIT, "--report", str(report), "--report-after-run"]
    progress.follow([*words, "--cores", arguments.cores, *arguments.snakemake])
    print(f"done in {progress.clock(time.monotonic() - started)}", flush=True)
    if (table := progress.RESULTS / "tables/table_pruning.tsv").exists():
        progress.show(table)
    print(f"\ntables   {progress.RESULTS}/tables\nfigures  {progress.RESULTS}/figures\nreport   {report}")
    print(f"page     {progress.RESULTS}/explore.html, which opens with a double click")

"""Run Snakemake with a progress line, and print the pruning table at the end."""

import os
import time
from collections.abc import Sequence
from typing import Annotated

from heads.base import progress

LIMIT = "1000/5s"
"""By default Snakemake starts at most 100 jobs per second, and for that goes through all waiting jobs in every second,
once for each job that has ended: half a minute of computing for 200 jobs. Every five seconds, it is a fifth of that."""


def run(
    snakemake: Annotated[Sequence[str], "further arguments for Snakemake, after --"] = (),
    /,
    *,
    cores: Annotated[str, "cores for Snakemake"] = "2",
    expect: Annotated[
        str | None, {"metavar": "EXPERIMENT"}, "first time a few of its updates, to say how long it takes"
    ] = None,
    needs_gpu: Annotated[bool, "end with one sentence if there is no GPU"] = False,
    alone: Annotated[int, "threads of the baseline, which is trained alone"] = 1,
) -> None:
    """Run Snakemake with a progress line and its report, and print the results and where they are."""
    progress.RESULTS.mkdir(exist_ok=True)
    if expect:
        os.environ[progress.PACE] = progress.timed(expect, alone, cores, needs_gpu=needs_gpu)
    started = time.monotonic()
    report = progress.RESULTS / "report.html"
    words = ["--logger", "heads", "--max-jobs-per-timespan", LIMIT, "--report", str(report), "--report-after-run"]
    progress.follow([*words, "--cores", cores, *snakemake])
    print(f"done in {progress.clock(time.monotonic() - started)}", flush=True)
    if (table := progress.RESULTS / "tables/table_pruning.tsv").exists():
        progress.show(table)
    print(f"\ntables   {progress.RESULTS}/tables\nfigures  {progress.RESULTS}/figures\nreport   {report}")
    print(f"page     {progress.RESULTS}/explore.html, which opens with a double click")

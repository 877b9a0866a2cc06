"""Run Snakemake and show on one line how far it is and what remains; at the end, print what was pruned."""

from __future__ import annotations

import argparse
import time

from heads.base import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads progress`."""
    parser.add_argument("--cores", default="2", help="cores for Snakemake")
    parser.add_argument("snakemake", nargs="*", help="further words for Snakemake, after --")


def run(arguments: argparse.Namespace) -> None:
    """Run Snakemake to the end, keep the line up to date, make the report, and show what came out."""
    progress.RESULTS.mkdir(exist_ok=True)
    started = time.monotonic()
    words = ["--logger", "heads", "--cores", arguments.cores, *arguments.snakemake]
    progress.follow(words)
    print(f"done in {progress.clock(time.monotonic() - started)}", flush=True)
    report = progress.RESULTS / "report.html"
    progress.follow([*words, "--report", str(report)])
    if (table := progress.RESULTS / "tables/table_pruning.tsv").exists():
        progress.show(table)
    print(f"\ntables   {progress.RESULTS}/tables\nfigures  {progress.RESULTS}/figures\nreport   {report}")
    print(f"page     {progress.RESULTS}/explore.html, to look around in: a double click opens it")

"""Keep the results of a finished experiment: its rows of every table, a few figures, and how they were made.

Called in the folder where Snakemake ran, whose metadata and logs say which job made each file.
"""

import base64
import re
import shlex
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from heads.base.files import UserError, atomic_path, read_json, read_tsv, settings_given, write_text, write_tsv
from heads.base.names import OVER_SEEDS
from heads.base.provenance import PACKAGES, recorded

RESULTS, LOGS = Path("results"), Path(".snakemake/log")
METADATA = Path(".snakemake/metadata")
"""Where Snakemake keeps a file for each output, named by its path in URL-safe base 64, long names in parts with @."""

PICTURES = (
    *("heads_needed", "bleu_encoder_heads", "score_scratch", "heads_by_type", "heads_by_layer", "head_functions"),
    *("scratch_curves", "functions_retained", "dynamics", "alignment_heads", "cross_attention", "selection"),
    *("michel_fig1", "michel_fig3", "michel_layers"),
)
"""The figures that are kept of an experiment, only as PNG."""

COLOURS = 64
"""Colours in a picture's palette: a third of the file size, and no visible difference."""

PLACE = re.compile(r"(?<![\w.~:/-])/(?:[\w.@+~-]+/)*(?=[\w.@+~-])")
"""The folders of an absolute path; not of a URL, nor of a path relative to here or to home."""

MANY_ROWS = 500
"""Of a table with at least this many rows, means and deviations over seeds are not kept: they follow from the rows."""

SHOWN = 4
"""How many commits, machines, devices or versions are named; the rest are only counted."""


@dataclass
class Job:
    """A job as Snakemake remembers it: times in Unix seconds; `record`: what it left in its log, empty without one."""

    rule: str
    inputs: Sequence[str]
    log: str
    command: str
    started: float
    ended: float
    record: Mapping[str, Any]

    @property
    def given(self) -> str:
        """The value of `--settings` in the command; empty if it has no such flag."""
        words = shlex.split(self.command)
        return words[words.index("--settings") + 1] if "--settings" in words else ""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings given to the command."""
        return settings_given(self.given) if self.given else {}


def keep(experiment: str, to: Path) -> Path:
    """Write what is kept of an experiment to a folder in `to`, replace what was kept before, and return the folder.

    No absolute path is kept. Raises UserError if there is nothing to keep.
    """
    tables = own_rows(experiment)
    pictures = [path for name in PICTURES if (path := RESULTS / "figures" / experiment / f"{name}.png").exists()]
    work = jobs_of(experiment)
    for missing, found in (("table has a row", tables), ("figure", pictures), ("job that Snakemake remembers", work)):
        if not found:
            raise UserError(f"No {missing} of {experiment} here: run snakemake --config 'run=[{experiment}]' first.")
    folder = to / experiment
    for part in ("tables", "figures"):
        shutil.rmtree(folder / part, ignore_errors=True)
    for name, rows in tables.items():
        write_tsv(folder / "tables" / name, rows, list(rows[0]))
    for path in pictures:
        compress(path, folder / "figures" / path.name)
    costs = costs_of(work)
    write_tsv(folder / "jobs.tsv", costs, list(costs[0]))
    write_text(folder / "settings.yaml", settings_of(experiment, work))
    write_text(folder / "README.md", story(experiment, work, costs))
    return folder


def without_places(text: str) -> str:
    """A text without the folders of its absolute paths."""
    return PLACE.sub("…/", text)


def own_rows(experiment: str) -> dict[str, list[dict[str, str]]]:
    """The rows of an experiment in each table, by file name; all rows of a table with columns for the experiment."""
    found = {}
    for path in sorted(RESULTS.glob("tables/table_*.tsv")):
        rows = [row for row in read_tsv(path) if _is_of(experiment, row)]
        if len(rows) >= MANY_ROWS:
            rows = [row for row in rows if row.get("seed") not in OVER_SEEDS]
        if rows:
            found[path.name] = [{name: without_places(cell) for name, cell in row.items()} for row in rows]
    return found


def _is_of(experiment: str, row: Mapping[str, str]) -> bool:
    if "experiment" in row:
        return row["experiment"] == experiment
    return any(column.endswith(f"_{experiment}") for column in row)


def compress(picture: Path, to: Path, colours: int = COLOURS) -> None:
    """Write a picture with a palette of few colours."""
    with Image.open(picture) as image, atomic_path(to) as temporary:
        few_colours = image.convert("RGB").quantize(colours, dither=Image.Dither.NONE)
        few_colours.save(temporary, format="PNG", optimize=True)


def jobs() -> dict[str, Job]:
    """The job behind each file that Snakemake made here, by the file's path."""
    found = {}
    for path in filter(Path.is_file, sorted(METADATA.rglob("*"))):
        name = "".join(part.removeprefix("@") for part in path.relative_to(METADATA).parts)
        output, kept = Path(base64.urlsafe_b64decode(name).decode()), read_json(path)
        log = next(iter(kept["log"] or ()), "")  # rules of another workflow may have none
        started, ended = (float(kept[name] or 0) for name in ("starttime", "endtime"))
        record, facts = recorded(Path(log)), output.with_name("model.json")
        if not record and output.name in ("model.safetensors", "model.json") and facts.exists():
            # From the cache between workflows, which keeps no logs.
            record = read_json(facts).get("provenance", {})
        found[str(output)] = Job(kept["rule"], kept["input"], log, kept["shellcmd"] or "", started, ended, record)
    return found


def jobs_of(experiment: str) -> list[Job]:
    """The jobs behind an experiment's own files, its corpus and the tables, each once, in the order they started."""
    made = jobs()
    mine = (f"{RESULTS}/{experiment}/", f"{RESULTS}/figures/{experiment}/")
    own = [job for path, job in made.items() if path.startswith(mine)]
    texts = {Path(name) for job in own for name in job.inputs if name.startswith(f"{RESULTS}/corpora/")}
    corpora = {"/".join(path.parts[:3]) + "/" for path in texts}
    places = (*mine, *corpora, f"{RESULTS}/tables/") if own else ()
    found = {job.log: job for path, job in made.items() if path.startswith(places) and Path(path).exists()}
    return sorted(found.values(), key=lambda job: (job.started, job.log))


def costs_of(work: Sequence[Job]) -> list[dict[str, Any]]:
    """One row per rule: number of jobs, their cost as far as Snakemake measured it, and the command of the first."""
    rows = []
    for rule in dict.fromkeys(job.rule for job in work):
        own = [job for job in work if job.rule == rule]
        wall, cpu, memory = zip(*map(_benchmark, own), strict=True)
        minutes = {"wall_minutes": round(sum(wall) / 60, 2), "cpu_minutes": round(sum(cpu) / 60, 2)}
        command, given = own[0].command, own[0].given
        command = without_places(command.replace(shlex.quote(given), "settings.yaml") if given else command)
        rows.append({"rule": rule, "jobs": len(own), **minutes, "memory_mb": round(max(memory)), "command": command})
    return rows


def _benchmark(job: Job) -> list[float]:
    """Seconds, CPU seconds and MB of a job, from the benchmark with the same name as its log; 0 without one."""
    log = Path(job.log)
    path = log.parent.parent / "bench" / f"{log.stem}.tsv"
    row = read_tsv(path)[-1] if path.is_file() else {}
    cells = [row.get(name, "") for name in ("s", "cpu_time", "max_rss")]
    # For jobs too short to be measured, it says so in words.
    return [float(cell) if re.fullmatch(r"[\d.]+", cell) else 0.0 for cell in cells]


def settings_of(experiment: str, work: Sequence[Job]) -> str:
    """The settings of all stages as YAML: the corpus's entry, and each section as the last job got it."""
    entries = {Path(job.log).parts[2]: job.settings for job in work if job.rule == "corpus"}
    own = [job for job in work if job.log.startswith(f"{RESULTS}/{experiment}/")]
    sections = dict(part for job in own for part in job.settings.items())
    all_of_it = {"corpora": entries, **dict(sorted(sections.items()))}
    return without_places(yaml.safe_dump(all_of_it, sort_keys=False, allow_unicode=True))


def story(experiment: str, work: Sequence[Job], costs: Sequence[Mapping[str, Any]]) -> str:
    """A page on how the results were made: code, machine, versions, cost and commands."""
    records = [job.record for job in work if job.record]
    ends = (work[0].started, max(job.ended for job in work))
    number, wall, cpu = (sum(row[name] for row in costs) for name in ("jobs", "wall_minutes", "cpu_minutes"))
    facts = {
        "code": _few(
            f"commit {one['commit'][:12]}{' and changes on it' * one['changed_since_commit']}" for one in records
        ),
        "machine": _few(f"{one['processor']}, {one['cores']} cores, {one['machine']}" for one in records),
        "device": _few(one["device"] for one in records if "device" in one),
        "versions": _few(", ".join(f"{name} {one[name]}" for name in ("python", *PACKAGES)) for one in records),
        "seeds": ", ".join(map(str, sorted({one["seed"] for one in records if "seed" in one}))),
        "when": " to ".join(time.strftime("%Y-%m-%d %H:%M", time.gmtime(moment)) for moment in ends) + " UTC",
        "cost": f"{cpu:.0f} CPU minutes, {wall:.0f} minutes one after another, "
        f"{number} jobs of at most {max(row['memory_mb'] for row in costs)} MB",
    }
    first = next((one["commit"] for one in records if one["commit"] != "unknown"), None)
    lines = [
        f"# What was measured: {experiment}",
        "",
        "Written from the results by `python -m heads keep`. `tables/` holds this experiment's rows of every table and",
        "`figures/` those that the pages show; captions of both are in [workflow/report](../../../workflow/report).",
        "`settings.yaml` has the settings of each stage, `jobs.tsv` each rule's cost and first command.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in facts.items()),
        "",
        "```sh",
        *([f"git checkout {first}"] if first else []),
        *(commands_of(experiment) or [f"snakemake --config 'run=[{experiment}]'"]),
        "```",
    ]
    return "\n".join(lines) + "\n"


def _few(words: Iterable[str]) -> str:
    """The first few different words, and how many more there are."""
    found = list(dict.fromkeys(words))
    rest = len(found) - SHOWN
    return ", ".join(found[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def commands_of(experiment: str) -> list[str]:
    """The commands that started Snakemake for an experiment, as in its logs: without the shell's quotes."""
    found = []
    for path in sorted(LOGS.glob("*.log")):
        said = path.read_text(encoding="utf-8", errors="replace")
        words = re.search(r"^ *Command: \S+ (.*)$", said, re.MULTILINE)
        if words and f"{RESULTS}/{experiment}/" in said:
            found.append(without_places(f"snakemake {words[1]}"))
    return list(dict.fromkeys(found))

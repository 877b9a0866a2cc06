"""Pack data and commands for a machine without Snakemake or network that will make files of an experiment.

Run: python benchmarks/gpu/pack.py FOLDER FILE... [--configfile MORE.yaml] [--cores 2] [--missing], in a clone with
everything that the workflow needs. Snakemake plans the files. Inputs of the GPU jobs that need no GPU themselves are
made here and copied into the folder under the same names, with `jobs.json`, the remaining commands in an order in which
they can run, and `commit`, the commit of the code. `story.py` runs them there.
"""

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from heads.base.files import UserError, read_yaml, write_json, write_text
from heads.base.provenance import provenance

ROOT = Path(__file__).parents[2]
BESIDE = ("pruned", "pruned_from_scratch")
"""Rules that need no GPU, but the models that other rules train on it."""


@dataclass(frozen=True)
class Job:
    """A planned job."""

    rule: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    log: str
    words: tuple[str, ...]
    """The arguments of its command, after `python`."""


def planned(said: str) -> Iterator[Job]:
    """The jobs that run a command, from the output of a Snakemake dry run and in its order."""
    for block in re.split(r"\n(?=\[.*\]\n(?:local)?rule )", said):
        head, _, rest = block.partition("Shell command: python ")
        if rest:
            rule = re.findall(r"^(?:local)?rule (\w+):$", head, re.MULTILINE)[0]
            lines = dict(re.findall(r"^    (\w+): (.*)$", head, re.MULTILINE))
            inputs, outputs = (tuple(filter(None, lines.get(key, "").split(", "))) for key in ("input", "output"))
            command, _, _ = rest.splitlines()[0].partition(" > ")
            yield Job(rule, inputs, outputs, lines["log"], tuple(shlex.split(command)))


def carried(jobs: Sequence[Job]) -> tuple[list[Job], list[str]]:
    """The jobs that run on the GPU according to the GPU profile, and the files that they need from here.

    Raises UserError if they need a file that a job elsewhere makes from their outputs.
    """
    rules = {*read_yaml(ROOT / "profiles/gpu/config.yaml")["set-resources"], *BESIDE}
    there = [job for job in jobs if job.rule in rules]
    made: set[str] = {path for job in there for path in job.outputs}
    late: set[str] = set()
    for job in jobs:
        if job.rule not in rules and {*job.inputs} & (made | late):
            late |= {*job.outputs}
    for job in there:
        if wanting := {*job.inputs} & late:
            raise UserError(f"{job.outputs[0]} needs {min(wanting)}, which is made of trained models: leave it out.")
    files = {path for job in there for path in job.inputs} - made
    # What a stage imports is part of the code, not of the data.
    return there, sorted(path for path in files if not path.startswith("workflow/"))


def snakemake(*words: str) -> str:
    """Run Snakemake and return its output; raise UserError with the end of it if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *words], check=False, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        raise UserError(f"Snakemake failed:\n{done.stdout[-3000:]}")
    return done.stdout


def pack(folder: Path, targets: Sequence[str], configfiles: Sequence[str], cores: int, *, missing: bool) -> float:
    """Make the folder and return its size in MB. missing: results that are there are brought along, not made again."""
    triggers = ["--rerun-triggers", "mtime"] if missing else []
    config = [*triggers, *(["--configfile", *configfiles] if configfiles else [])]
    planning = [] if missing else ["--forceall"]
    jobs, files = carried(list(planned(snakemake("-n", "-p", *planning, *config, "--", *targets))))
    snakemake("--cores", str(cores), *config, "--", *files)
    # The checksum of a vocabulary is read together with it.
    beside = [str(path.with_suffix(".json")) for path in map(Path, files) if path.suffix == ".model"]
    for name in [*files, *beside]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, folder / name)
    write_json(folder / "jobs.json", [asdict(job) for job in jobs])
    made_by = provenance()
    write_text(folder / "commit", made_by["commit"] + "+" * made_by["changed_since_commit"])
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main() -> int:
    """Pack what the flags ask for; a user error prints one sentence and gives exit status 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder to write")
    parser.add_argument("targets", nargs="+", help="files to be made")
    parser.add_argument("--configfile", nargs="+", default=[], help="laid over config.yaml, as for Snakemake")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--missing", action="store_true", help="bring along what is made already, such as a baseline")
    flags = parser.parse_args()
    try:
        size = pack(flags.folder, flags.targets, flags.configfile, flags.cores, missing=flags.missing)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for job in json.loads((flags.folder / "jobs.json").read_text(encoding="utf-8")):
        print(job["rule"], job["outputs"][0])
    print(f"{size:.1f} MB in {flags.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

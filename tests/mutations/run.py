"""Put plausible errors into the project one at a time and see whether the tests that should notice do.

    python tests/mutations/run.py [--jobs 2] [--match WORDS] [--list]

The errors stand in the .toml files beside this script: `file`, the text `old` that occurs there once, the text `new` in
its place, and `tests`, what pytest is given. Each is tried in a copy of the files that git knows, so that nothing here
is touched. Tests that fail have noticed it. Exit status 1 when an error survived, or when a list no longer fits the
code. Not a part of `make test`, as it takes an hour.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NOTICED, SURVIVED, STALE = "noticed", "SURVIVED", "STALE"
SECONDS = 900
"""After so long the tests count as failed: an error that makes them hang is noticed by that."""


@dataclass(frozen=True)
class Mutation:
    """One plausible error: what it is, where it stands, and which tests should fail with it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    room: str


def mutations() -> Iterator[Mutation]:
    """All errors of all lists, in the order of the files."""
    for path in sorted(HERE.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]:
            yield Mutation(**{**entry, "tests": tuple(entry["tests"])}, room=path.stem)


def known_files() -> list[str]:
    """The files that git knows or would add, below the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def tried(mutation: Mutation, files: Sequence[str]) -> str:
    """What became of the tests with one error in a copy of the project."""
    text = (ROOT / mutation.file).read_text(encoding="utf-8") if (ROOT / mutation.file).exists() else ""
    if text.count(mutation.old) != 1 or mutation.old == mutation.new:
        return STALE
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        for name in files:
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, Path(folder) / name)
        (Path(folder) / mutation.file).write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutation.tests]
        environment = {**os.environ, "PYTHONPATH": str(Path(folder) / "workflow"), "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return NOTICED
    # 1: a test failed; 2: a file could not be imported. 4 and 5, no such test, would be an error of the list.
    return {0: SURVIVED, 1: NOTICED, 2: NOTICED}.get(done.returncode, STALE)


def main() -> int:
    """Try the errors that were asked for, a line each, and count them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2, help="errors tried at once")
    parser.add_argument("--match", default="", help="only those whose list, name or file has these words in it")
    parser.add_argument("--list", action="store_true", help="name them and try none")
    arguments = parser.parse_args()
    chosen = [m for m in mutations() if arguments.match in f"{m.room} {m.name} {m.file}"]
    if arguments.list:
        print("\n".join(f"{m.room}: {m.name} ({m.file})" for m in chosen))
        return 0
    files, outcomes = known_files(), []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for mutation, outcome in zip(chosen, pool.map(lambda m: tried(m, files), chosen), strict=True):
            outcomes.append(outcome)
            print(f"{outcome:9} {mutation.room}: {mutation.name} ({mutation.file})", flush=True)
    print(f"{outcomes.count(NOTICED)} of {len(outcomes)} noticed, {outcomes.count(SURVIVED)} survived, "
          f"{outcomes.count(STALE)} no longer fit")  # fmt: skip
    return int(outcomes.count(NOTICED) < len(outcomes))


if __name__ == "__main__":
    sys.exit(main())

"""Put plausible errors into the project one at a time and check that the tests that should notice them fail.

    python tests/mutations/run.py [--jobs 2] [--match WORDS] [--share 10 [--seed 1]] [--list]

The errors are in the .toml files beside this script: `file`, the text `old` that occurs there once, the text `new` in
its place, and `tests`, pytest's arguments. Each is tried in a copy of the files that git knows, so that nothing here
is touched. Tests that fail have noticed it. If none fails and some are skipped, for lack of a browser for instance,
nothing is known. Exit status 1 when an error survived, or when a list no longer fits the code. All of them take more
than an hour; `make test-all` tries a tenth, drawn anew for each commit, so that all who test one try the same.

Packages that take seconds to import are imported once; each error is tried in a fork of this process, which has not
imported anything of the project.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NOTICED, SURVIVED, STALE, SKIPPED = "noticed", "SURVIVED", "STALE", "skipped"
LACKING = 9
"""Exit status where no test failed and some were skipped."""
SECONDS = 900
"""Time limit in seconds, after which tests count as failed: this catches errors that make them hang."""
HEAVY = ("torch", "pandas", "matplotlib.figure", "seaborn", "sacrebleu", "sentencepiece", "pulp", "yaml", "pytest")


@dataclass(frozen=True)
class Mutation:
    """One plausible error: what it is, where it goes, and which tests should fail with it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    room: str

    @property
    def fits(self) -> bool:
        """Whether the text occurs in the file exactly once."""
        path = ROOT / self.file
        return path.exists() and path.read_text(encoding="utf-8").count(self.old) == 1 and self.old != self.new


def mutations() -> Iterator[Mutation]:
    """All errors of all lists, in the order of the files."""
    for path in sorted(HERE.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]:
            yield Mutation(**{**entry, "tests": tuple(entry["tests"])}, room=path.stem)


class Skips:
    """A plugin of pytest that sees whether tests are skipped."""

    seen = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Look at a test's report."""
        self.seen |= report.skipped


def copy_of_project(folder: Path) -> Path:
    """Copy the files that git knows or would add into a folder."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def start(mutation: Mutation, folder: Path) -> int:
    """Put an error into a copy and start the tests there; return the process id."""
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    (folder / mutation.file).write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    process = os.fork()
    if process:
        return process
    os.setsid()
    signal.alarm(SECONDS)
    os.chdir(folder)
    os.environ["PYTHONPATH"] = str(folder / "workflow")
    sys.dont_write_bytecode = True
    said = os.open(folder / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    status, skips = 3, Skips()
    try:
        words = ["-x", "-q", "-p", "no:cacheprovider", *mutation.tests]
        status = int(import_module("pytest").main(words, plugins=[skips])) or LACKING * skips.seen
    finally:
        os._exit(status)


def outcome_of(status: int) -> str:
    """The outcome by exit status: 1, a test failed; 2, a file could not be imported; a signal, the tests hung."""
    code = os.waitstatus_to_exitcode(status)
    return NOTICED if code in (1, 2) or code < 0 else {0: SURVIVED, LACKING: SKIPPED}.get(code, STALE)


def tried(chosen: Sequence[Mutation], jobs: int, place: Path) -> Iterator[tuple[Mutation, str]]:
    """Try errors, several at a time, each in its own copy; yield them as they finish."""
    yield from ((mutation, STALE) for mutation in chosen if not mutation.fits)
    waiting = [mutation for mutation in chosen if mutation.fits]
    free = [copy_of_project(place / str(number)) for number in range(min(jobs, len(waiting)))]
    running: dict[int, tuple[Mutation, Path]] = {}
    while waiting or running:
        while waiting and free:
            mutation, folder = waiting.pop(0), free.pop()
            running[start(mutation, folder)] = mutation, folder
        process, status = os.waitpid(-1, 0)  # each of them has an alarm
        mutation, folder = running.pop(process)
        shutil.copy2(ROOT / mutation.file, folder / mutation.file)
        free.append(folder)
        yield mutation, outcome_of(status)


def content_of_commit() -> str:
    """What names the content of the last commit, whoever made it and when."""
    words = ["git", "rev-parse", "--short=12", "HEAD^{tree}"]
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


def main() -> int:
    """Try the selected errors, print a line for each, and count them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2, help="errors tried at once")
    parser.add_argument("--match", default="", help="only those whose list, name or file has these words in it")
    parser.add_argument("--share", type=int, default=1, help="of these one in so many, drawn at random")
    parser.add_argument("--seed", default=content_of_commit(), help="of the draw; by default the content of the commit")
    parser.add_argument("--list", action="store_true", help="name them and try none")
    arguments = parser.parse_args()
    chosen = [m for m in mutations() if arguments.match in f"{m.room} {m.name} {m.file}"]
    if arguments.share > 1:
        print(f"one in {arguments.share} of {len(chosen)}, drawn by --seed {arguments.seed}")
        chosen = random.Random(arguments.seed).sample(chosen, -(-len(chosen) // arguments.share))
    if arguments.list:
        print("\n".join(f"{m.room}: {m.name} ({m.file})" for m in chosen))
        return 0
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path[:] = [path for path in sys.path if Path(path).resolve() not in (HERE, ROOT / "workflow")]
    for name in HEAVY:
        import_module(name)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="mutations-") as place:
        for mutation, outcome in tried(chosen, arguments.jobs, Path(place)):
            outcomes.append(outcome)
            print(f"{outcome:9} {mutation.room}: {mutation.name} ({mutation.file})", flush=True)
    print(f"{outcomes.count(NOTICED)} of {len(outcomes)} noticed, {outcomes.count(SURVIVED)} survived, "
          f"{outcomes.count(STALE)} no longer fit, of {outcomes.count(SKIPPED)} nothing is known here")  # fmt: skip
    return int(SURVIVED in outcomes or STALE in outcomes)


if __name__ == "__main__":
    sys.exit(main())

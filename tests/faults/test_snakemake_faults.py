"""The whole workflow under faults: Snakemake killed, stopped, started twice, in odd places and at odd times."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
import yaml
from test_killed_trainings import wait_for
from workshop import PATIENCE_SECONDS, Command, config, training_words, write_settings

from checkouts import checkout
from heads.base.files import write_text
from warm_python import warm_python

pytestmark = pytest.mark.slow

RUN = "results/tiny/baseline/seed-1"
MODEL = f"{RUN}/model.safetensors"
SUBWORDS = ("results/tiny/bpe/source.model", "results/tiny/bpe/dev.source.safetensors")
LONG = {"baseline": {"updates": 120, "average_every": 40, "checkpoint_updates": []}, "training": {"evaluate_every": 20}}


@pytest.fixture(scope="module")
def long_results(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of `results`, ready for a training that takes some seconds."""
    folder = shutil.copytree(results, tmp_path_factory.mktemp("long") / "results")
    write_settings(folder, **LONG)
    return folder


@pytest.fixture(scope="module")
def expected(long_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of that training when nothing disturbs it."""
    folder = tmp_path_factory.mktemp("expected")
    status, said = Command(training_words("baseline", long_results, folder / "run"), folder / "said.txt").end()
    assert status == 0, said
    return folder / "run"


@pytest.fixture
def place(long_results: Path, tmp_path: Path) -> Path:
    """A checkout with all that the training reads, in a path with spaces, quotes and letters of all kinds."""
    folder = tmp_path / "mein Ordner; 'für' \"$(touch pwned)\" слон 象"
    folder.mkdir()
    checkout(folder)
    shutil.copytree(long_results, folder / "results")
    write_text(folder / "tiny.yaml", yaml.safe_dump(config(**LONG)))
    rules = folder / "workflow/rules/models.smk"
    text = rules.read_text(encoding="utf-8")
    assert text.count("heads {params.stage:q}") == 1
    write_text(rules, text.replace("heads {params.stage:q}", "heads {params.stage:q} --save-every-seconds 0.1"))
    return folder


@contextmanager
def snakemake(
    folder: Path, *words: str, target: str = MODEL, python: str = sys.executable, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run Snakemake in its own session, with its output in a file; kill all its processes at the end."""
    command = [python, "-m", "snakemake", target, "--cores", "1", "--configfile", "tiny.yaml", *words]
    with (folder / "said.txt").open("wb") as stream:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    family = [psutil.Process(process.pid)]
    try:
        yield process
        family += family[0].children(recursive=True) if process.poll() is None else []
    finally:
        for member in family[::-1]:
            if member.is_running():
                member.kill()
        process.wait(PATIENCE_SECONDS)


def run(folder: Path, *words: str, target: str = MODEL, **environment: str) -> tuple[int, str]:
    """Run Snakemake to its end; return its exit status and output.

    It is forked from a warm Python unless it must start under another environment.
    """
    python = sys.executable if environment else warm_python()
    with snakemake(folder, *words, target=target, python=python, **environment) as process:
        status = process.wait(PATIENCE_SECONDS)
    return status, (folder / "said.txt").read_text(encoding="utf-8", errors="replace")


def training_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The processes of the job that Snakemake runs: the shell and the training."""
    return list(psutil.Process(process.pid).children(recursive=True))


def resumed(folder: Path) -> int:
    """The update at which the last training resumed; 0 if it started from the beginning."""
    found = re.search(r"^resumed at update (\d+)$", (folder / RUN / "log/baseline.txt").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


def finished_as(folder: Path, expected: Path) -> bool:
    return (folder / MODEL).read_bytes() == (expected / "model.safetensors").read_bytes()


def test_the_whole_of_snakemake_killed_with_9_and_started_again_goes_on_to_the_same_bits(
    place: Path, expected: Path
) -> None:
    with snakemake(place) as process:
        wait_for(place / RUN / "unfinished/state.safetensors")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_SECONDS)
    assert not (place / MODEL).exists()
    status, said = run(place)
    if status:  # the killed one left its lock
        assert "--unlock" in said and "Traceback" not in said
        assert run(place, "--unlock")[0] == 0
        status, said = run(place)
    assert status == 0, said
    assert resumed(place) > 0 and finished_as(place, expected)
    assert not (place / RUN / "unfinished").exists() and not list(place.parent.rglob("pwned"))


def test_a_job_whose_node_is_lost_is_done_again_by_the_same_snakemake_to_the_same_bits(
    place: Path, expected: Path
) -> None:
    with snakemake(place, "--retries", "1") as process:
        wait_for(place / RUN / "unfinished/state.safetensors")
        for member in training_of(process):
            member.kill()
        status = process.wait(PATIENCE_SECONDS)
    assert status == 0, (place / "said.txt").read_text()
    assert resumed(place) > 0 and finished_as(place, expected)


def test_sigterm_to_all_processes_of_a_job_saves_its_state_and_the_next_run_goes_on_from_there(
    place: Path, expected: Path
) -> None:
    rules = place / "workflow/rules/models.smk"
    write_text(rules, rules.read_text().replace("--save-every-seconds 0.1", "--save-every-seconds 3600"))
    with snakemake(place) as process:
        wait_for(place / RUN / "unfinished/train.jsonl")
        for member in training_of(process):
            member.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 1
    stopped = re.search(
        r"^error: stopped at update (\d+),", (place / RUN / "log/baseline.txt").read_text(), re.MULTILINE
    )
    assert stopped and not (place / MODEL).exists()
    status, said = run(place)
    assert status == 0, said
    assert resumed(place) == int(stopped[1]) and finished_as(place, expected)


def test_a_second_snakemake_in_the_same_folder_is_refused_and_the_first_is_not_disturbed(
    place: Path, expected: Path
) -> None:
    with snakemake(place) as process:
        wait_for(place / RUN / "unfinished/state.safetensors")
        (place / "said.txt").rename(place / "first.txt")
        status, said = run(place)
        assert status == 1 and "cannot be locked" in said and "Traceback" not in said
        assert process.wait(PATIENCE_SECONDS) == 0, (place / "first.txt").read_text()
    assert finished_as(place, expected)


def dated(place: Path, year: int) -> None:
    """Delete the subwords of one side, and date all remaining files to a year."""
    for name in SUBWORDS:
        (place / name).unlink()
    for path in (place / "results").rglob("*"):
        os.utime(path, (moment := (year - 1970) * 365.25 * 86400, moment))


def python_says(code: str, environment: Mapping[str, str]) -> str:
    """What a line of Python prints in an environment."""
    command, whole = [sys.executable, "-c", f"import locale, time; print({code})"], {**os.environ, **environment}
    return subprocess.run(command, env=whole, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


# Python reads and writes text in the locale's encoding unless it is given another.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
LATIN = "tr_TR.ISO-8859-9"
# Files, from the text on, of the side whose letters neither encoding has.
RUSSIAN = (
    "results/corpora/tiny/dev.target.txt",
    "results/corpora/tiny/train.target.txt",
    "results/tiny/bpe/target.model",
    "results/tiny/bpe/target.json",
    "results/tiny/bpe/dev.target.safetensors",
)


@pytest.mark.parametrize("encoding", ["ANSI_X3.4-1968", "ISO-8859-9"])
def test_an_odd_locale_changes_no_bit(place: Path, tmp_path: Path, encoding: str) -> None:
    odd = ASCII
    if encoding == "ISO-8859-9":
        made = ["localedef", "-i", "tr_TR", "-f", encoding, str(tmp_path / LATIN)]
        if not shutil.which("localedef") or subprocess.run(made, check=False, timeout=60).returncode:
            pytest.skip("no sources of locales here: apt-get install locales")
        odd = {"LOCPATH": str(tmp_path), "LC_ALL": LATIN}
    assert python_says("locale.getpreferredencoding(False)", odd) == encoding
    before = [(place / name).read_bytes() for name in RUSSIAN]
    assert "слон" not in before[0].decode() and len(before[0].decode()) < len(before[0])
    for name in RUSSIAN:
        (place / name).unlink()
    status, said = run(place, target=RUSSIAN[-1], **odd)
    assert status == 0, said
    assert [(place / name).read_bytes() for name in RUSSIAN] == before


def test_files_of_1971_and_an_odd_time_zone_change_no_bit_and_nothing_is_done_twice(place: Path) -> None:
    before = [(place / name).read_bytes() for name in SUBWORDS]
    dated(place, 1971)
    zone = {"TZ": "ODD-13:45"}
    assert python_says("time.timezone", zone) == str(-(13 * 60 + 45) * 60)
    status, said = run(place, target=SUBWORDS[1], **zone)
    assert status == 0, said
    assert [(place / name).read_bytes() for name in SUBWORDS] == before
    assert "Nothing to be done" in run(place, target=SUBWORDS[1])[1]


def test_files_from_the_future_are_told_in_one_sentence(place: Path) -> None:
    dated(place, 2100)
    status, said = run(place, target=SUBWORDS[1])
    assert status == 1 and "This could indicate a clock skew problem" in said and "Traceback" not in said

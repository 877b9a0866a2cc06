"""Trainings that are killed, are stopped, run out of disk space or diverge to NaN, and what they leave behind."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from workshop import PATIENCE_SECONDS, Command, Fault, gates_words, training_words, write_settings

from heads.base.files import read_jsonl

pytestmark = pytest.mark.slow

MEANS = {"loss": 0, "source_tokens_per_second": 0}


def same(one: Path, other: Path) -> None:
    """Assert that two trainings left the same bits, except speed and loss in logs (means since the last start)."""
    names = {path.relative_to(one).as_posix() for path in one.rglob("*") if path.is_file()}
    assert names == {path.relative_to(other).as_posix() for path in other.rglob("*") if path.is_file()}
    for name in names:
        if name.endswith(".jsonl"):
            logs = [[{**r, **MEANS} for r in read_jsonl(place / name)] for place in (one, other)]
            assert logs[0] == logs[1], name
        else:
            assert (one / name).read_bytes() == (other / name).read_bytes(), name


def wait_for(path: Path) -> None:
    """Wait until a file exists."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert path.exists(), path


def test_a_training_killed_with_9_before_every_single_update_ends_with_the_same_bits(
    results: Path, undisturbed: Path, tmp_path: Path
) -> None:
    words, updates = training_words("baseline", results, tmp_path / "run"), 12
    for update in range(1, updates + 1):
        status, said = Command(words, tmp_path / "said.txt", Fault(kill_before=update)).end()
        assert status == -signal.SIGKILL
        assert update < 3 or f"resumed at update {update - 2}\n" in said
    assert Command(words, tmp_path / "said.txt").end()[0] == 0
    same(undisturbed, tmp_path / "run")


@pytest.mark.parametrize("file", [1, 2, 4, 10, 15, 16])
def test_a_training_killed_with_9_in_the_midst_of_writing_a_file_ends_with_the_same_bits(
    results: Path, undisturbed: Path, tmp_path: Path, file: int
) -> None:
    words = training_words("baseline", results, tmp_path / "run")
    assert Command(words, tmp_path / "said.txt", Fault(kill_in_save=file)).end()[0] == -signal.SIGKILL
    assert len(list((tmp_path / "run").rglob(".*.part"))) == 1
    assert Command(words, tmp_path / "said.txt").end()[0] == 0
    same(undisturbed, tmp_path / "run")


@pytest.mark.parametrize("milliseconds", [40, 150, 260])
def test_a_training_with_gates_killed_with_9_from_outside_at_any_moment_ends_with_the_same_bits(
    results: Path, undisturbed: Path, tmp_path: Path, milliseconds: int
) -> None:
    for name in ("whole", "killed"):
        words = gates_words(results, undisturbed, tmp_path / name)
        if name == "killed":
            command = Command(words, tmp_path / "said.txt", Fault(seconds_an_update=0.03))
            wait_for(tmp_path / name / "unfinished/state.safetensors")
            time.sleep(milliseconds / 1000)
            command.signal(signal.SIGKILL)
            assert command.end()[0] == -signal.SIGKILL
        assert Command(words, tmp_path / "said.txt").end()[0] == 0
    same(tmp_path / "whole", tmp_path / "killed")


def test_a_training_whose_clock_goes_backwards_saves_its_state_all_the_same_and_ends_with_the_same_bits(
    results: Path, undisturbed: Path, tmp_path: Path
) -> None:
    words = training_words("baseline", results, tmp_path / "run", save_every_seconds=0.1)
    odd = Fault(kill_before=8, seconds_an_update=0.06, clock_backwards=True)
    assert Command(words, tmp_path / "said.txt", odd).end()[0] == -signal.SIGKILL
    status, said = Command(words, tmp_path / "said.txt", Fault(clock_backwards=True)).end()
    assert status == 0 and re.search(r"^resumed at update [1-7]$", said, re.MULTILINE), said
    same(undisturbed, tmp_path / "run")


def test_a_training_saves_its_state_no_more_often_than_it_is_told_to(results: Path, tmp_path: Path) -> None:
    words = training_words("baseline", results, tmp_path / "run", save_every_seconds=3600)
    assert Command(words, tmp_path / "said.txt", Fault(kill_before=8)).end()[0] == -signal.SIGKILL
    assert not (tmp_path / "run/unfinished/state.safetensors").exists()


def test_a_training_stopped_by_sigterm_saves_at_once_says_so_and_goes_on_from_there(
    results: Path, undisturbed: Path, tmp_path: Path
) -> None:
    # Without the signal, the state would not be saved for an hour.
    words = training_words("baseline", results, tmp_path / "run", save_every_seconds=3600)
    command = Command(words, tmp_path / "said.txt", Fault(seconds_an_update=0.1))
    wait_for(tmp_path / "run/unfinished/train.jsonl")
    command.signal(signal.SIGTERM)
    status, said = command.end()
    stopped = re.fullmatch(r"error: stopped at update (\d+), its state is kept: .*", said.splitlines()[-1])
    assert status == 1 and stopped and int(stopped[1]) < 12 and "Traceback" not in said
    assert not (tmp_path / "run/model.safetensors").exists()
    status, said = Command(words, tmp_path / "said.txt").end()
    assert status == 0 and f"resumed at update {stopped[1]}\n" in said
    same(undisturbed, tmp_path / "run")


def test_a_second_training_in_the_same_folder_is_told_so_and_the_first_is_not_disturbed(
    results: Path, undisturbed: Path, tmp_path: Path
) -> None:
    words = training_words("baseline", results, tmp_path / "run")
    first = Command(words, tmp_path / "first.txt", Fault(seconds_an_update=0.05))
    wait_for(tmp_path / "run/unfinished/state.safetensors")
    status, said = Command(words, tmp_path / "second.txt").end()
    assert status == 1 and re.fullmatch(r"error: .*unfinished is in use by another training: .*\n", said)
    assert first.end()[0] == 0
    same(undisturbed, tmp_path / "run")


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A file system with little space."""
    folder.mkdir()
    size = f"size={kilobytes}k"
    if (
        os.getuid()
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", size, "faults", str(folder)], check=False, timeout=60
        ).returncode
    ):
        pytest.skip("no disk to fill: only root may mount one")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True, timeout=60)


def test_a_disk_that_fills_up_keeps_the_state_before_and_is_named_and_with_room_the_training_goes_on(
    results: Path, undisturbed: Path, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", kilobytes=260) as disk:
        words = training_words("baseline", results, disk / "run")
        status, said = Command(words, tmp_path / "said.txt").end()
        assert status == 1 and "Traceback" not in said
        assert re.fullmatch(
            r"error: .*disk/run/unfinished/\S+ cannot be written \(.*: make room .*", said.splitlines()[-1]
        )
        assert (disk / "run/unfinished/state.safetensors").exists()
        assert not list(disk.rglob("*.part"))
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True, timeout=60)
        status, said = Command(words, tmp_path / "said.txt").end()
        assert status == 0 and re.search(r"^resumed at update [1-9]", said, re.MULTILINE)
        same(undisturbed, disk / "run")


def test_a_file_that_may_not_grow_ends_in_one_sentence_and_keeps_the_state_before(
    results: Path, undisturbed: Path, tmp_path: Path
) -> None:
    words = training_words("baseline", results, tmp_path / "run")
    assert Command(words, tmp_path / "said.txt", Fault(kill_before=3)).end()[0] == -signal.SIGKILL
    state = tmp_path / "run/unfinished/state.safetensors"
    before = state.read_bytes()
    status, said = Command(words, tmp_path / "said.txt", Fault(most_bytes=len(before) // 2)).end()
    assert status == 1 and re.search(r"^error: .* cannot be written \(.*\): make room", said, re.MULTILINE)
    assert state.read_bytes() == before and "Traceback" not in said
    assert Command(words, tmp_path / "said.txt").end()[0] == 0
    same(undisturbed, tmp_path / "run")


def test_a_loss_that_is_no_number_stops_the_training_within_three_updates(results: Path, tmp_path: Path) -> None:
    write_settings(tmp_path / "results", training={"learning_rate": 1e30})
    settings = tmp_path / "results/tiny/settings/baseline.yaml"
    words = training_words("baseline", results, tmp_path / "run", settings=settings)
    status, said = Command(words, tmp_path / "said.txt").end()
    last = said.splitlines()[-1]
    stopped = re.fullmatch(
        rf"error: {re.escape(str(tmp_path / 'run'))}: .* update (\d+): lower the learning rate, .*", last
    )
    assert status == 1 and stopped and int(stopped[1]) <= 3 and "Traceback" not in said
    assert not (tmp_path / "run/model.safetensors").exists()


@pytest.mark.parametrize("update", [4, 12])
def test_weights_that_are_no_numbers_are_never_saved_over_the_last_good_state(
    results: Path, undisturbed: Path, tmp_path: Path, update: int
) -> None:
    words = training_words("baseline", results, tmp_path / "run")
    status, said = Command(words, tmp_path / "said.txt", Fault(spoil_after=update)).end()
    last = said.splitlines()[-1]
    assert status == 1 and "Traceback" not in said
    assert re.fullmatch(rf"error: .* after update {update}: lower the learning rate, .*", last)
    assert not (tmp_path / "run/model.safetensors").exists()
    status, said = Command(words, tmp_path / "said.txt").end()
    assert status == 0 and f"resumed at update {update - 1}\n" in said
    same(undisturbed, tmp_path / "run")

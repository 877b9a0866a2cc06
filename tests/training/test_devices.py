"""Each GPU is handed out to one job at a time and released when the job is gone, however it ended."""

import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import heads.training.devices
from checkouts import ROOT
from heads.__main__ import main
from heads.base.files import UserError
from heads.training.devices import JOBS_A_GPU, LOCK_HOMES, claim, lock_folder, own_gpu, pick, places_on

CLAIM = """
import sys
import warnings
from pathlib import Path
from heads.training.devices import claim
print(claim(["first", "second"], Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def started(code: str, folder: Path) -> subprocess.Popen[str]:
    """A process that runs this code on a folder of claims."""
    command, environment = [sys.executable, "-c", code, str(folder)], {"PYTHONPATH": str(ROOT / "workflow")}
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, text=True, env=environment, **streams)  # type: ignore[call-overload, no-any-return]


def claiming(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """A process that claims one of two GPUs and keeps running, and the GPU that it got."""
    job = started(CLAIM, folder)
    assert job.stdout is not None
    return job, job.stdout.readline().strip()


@pytest.mark.slow
def test_two_jobs_never_take_the_same_gpu_and_a_killed_one_gives_it_back(tmp_path: Path) -> None:
    jobs = [claiming(tmp_path) for _ in range(3)]
    try:
        assert [got for _, got in jobs] == ["0", "1", "None"]
        jobs[0][0].kill()
        jobs[0][0].wait(20)
        jobs.append(claiming(tmp_path))
        assert jobs[-1][1] == "0"
    finally:
        for job, _ in jobs:
            job.kill()
            job.wait(20)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_one_process_that_asks_again_gets_another_one_until_there_is_none(count: int, tmp_path: Path) -> None:
    names = [f"gpu {number}" for number in range(count)]
    assert [claim(names, tmp_path) for _ in range(count + 1)] == [*range(count), None]


LEAVE = """
import atexit, sys
atexit.register(lambda: [print("leaving", flush=True), sys.stdin.read()])  # called after those registered later
from pathlib import Path
from heads.training.devices import claim
claim(["first"], Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_gpu_is_not_handed_on_while_its_job_still_shuts_down(tmp_path: Path) -> None:
    job = started(LEAVE, tmp_path)
    try:
        assert job.stdout is not None and job.stdout.readline() == "leaving\n"
        assert claim(["first"], tmp_path) is None
        job.communicate(timeout=20)
        assert claim(["first"], tmp_path) == 0
    finally:
        job.kill()
        job.wait(20)


WAIT = """
import sys
import warnings
from pathlib import Path
from heads.training.devices import taken
print(taken(["second"], Path(sys.argv[1]), "waiting for the second"), flush=True)
"""


@pytest.mark.slow
def test_a_gpu_that_is_asked_for_by_its_number_is_waited_for_and_that_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holders = [claiming(tmp_path)[0] for _ in range(2)]
    job = started(WAIT, tmp_path)
    try:
        assert job.stderr is not None and job.stderr.readline() == "waiting for the second\n"
        assert job.poll() is None
        holders[1].kill()
        assert job.communicate(timeout=20) == ("0\n", "")
    finally:
        for process in (*holders, job):
            process.kill()
            process.wait(20)


@pytest.fixture
def three_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with three GPUs that no other test uses; the folder of its claims."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda place: SimpleNamespace(uuid=f"gpu {place}"))
    monkeypatch.setattr(heads.training.devices, "LOCK_HOMES", (tmp_path / "not there", tmp_path))
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    return lock_folder((tmp_path,))


def test_a_gpu_asked_for_by_its_number_is_no_longer_free_for_others(three_gpus: Path) -> None:
    assert own_gpu("1") == 1
    assert claim(["gpu 1"], three_gpus) is None
    assert [own_gpu(None), own_gpu(None)] == [0, 2]


@pytest.mark.timeout(60)  # otherwise a job without a place waits for one
def test_as_many_jobs_share_a_gpu_as_all_of_them_are_told(three_gpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JOBS_A_GPU, "3")
    assert [own_gpu("1") for _ in range(3)] == [1, 1, 1]
    assert [own_gpu(None) for _ in range(6)] == [0, 2, 0, 2, 0, 2], "a free one first, then second places"
    assert claim(places_on(["gpu 0", "gpu 1", "gpu 2"]), three_gpus) is None
    monkeypatch.delenv(JOBS_A_GPU)
    assert claim(places_on(["gpu 0", "gpu 1", "gpu 2"]), three_gpus) is None, "who shares with nobody waits for them"


@pytest.mark.parametrize("jobs", ["0", "-1", "two", "", "1.5"])
def test_a_number_of_jobs_a_gpu_that_there_is_not_is_refused(
    three_gpus: Path, monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    monkeypatch.setenv(JOBS_A_GPU, jobs)
    with pytest.raises(UserError, match=f"^HEADS_JOBS_A_GPU={jobs} is not valid: give 1 or more.$"):
        own_gpu(None)


def test_memory_is_not_filled_before_it_is_written() -> None:
    """Filling memory hides reads that come too early; torch fills it itself when results must be reproducible."""
    pick("cpu", 1)
    assert torch.get_deterministic_debug_mode() == 1
    values = [torch.empty(100_000).fill_(2.0) for _ in range(3)]
    del values
    assert not any(torch.empty(100_000).isnan().all() for _ in range(3))


def test_attention_on_a_gpu_plans_nothing_for_each_shape_wherever_a_device_was_picked() -> None:
    torch.backends.cuda.enable_cudnn_sdp(enabled=True)
    pick("cpu", 1)
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.flash_sdp_enabled() and torch.backends.cuda.mem_efficient_sdp_enabled()


@pytest.mark.filterwarnings("error")
def test_that_gradients_of_attention_differ_in_the_last_digits_is_not_told_and_other_warnings_are() -> None:
    pick("cpu", 1)
    way_out = "To explicitly enable determinism call torch.use_deterministic_algorithms(True, warn_only=False)."
    for name in ("Flash Attention", "Memory Efficient attention"):
        warnings.warn(f"{name} defaults to a non-deterministic algorithm. {way_out}", stacklevel=1)
    for told in ("cuDNN Attention defaults to a non-deterministic algorithm.", "x does not have a deterministic one"):
        with pytest.raises(UserWarning, match=told):
            warnings.warn(told, stacklevel=1)


def test_a_number_without_a_gpu_and_one_gpu_for_several_processes_are_refused(
    three_gpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="cuda:3 does not exist: torch sees 3 GPUs"):
        own_gpu("3")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="each process needs its own"):
        own_gpu("1")
    assert own_gpu(None) == 0


@pytest.mark.slow
def test_jobs_with_temporary_folders_of_their_own_meet_in_the_same_folder(tmp_path: Path) -> None:
    code = "from heads.training.devices import LOCK_HOMES, lock_folder\nprint(lock_folder(LOCK_HOMES))"
    found = {str(lock_folder(LOCK_HOMES))}
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "TMPDIR": str(tmp_path)}
    found.add(subprocess.check_output([sys.executable, "-c", code], env=environment, text=True, timeout=120).strip())
    assert len(found) == 1
    assert lock_folder((tmp_path / "not there", tmp_path)).parent == tmp_path


@pytest.mark.parametrize(
    ("flag", "value", "reason"),
    [
        *(("--device", name, "is not known") for name in ("foo", "cpu:3", "cuda:x", "cuda:-1", "mps", "")),
        *(("--threads", number, "give 1 or more") for number in ("0", "-2")),
    ],
)
def test_a_device_or_a_number_of_threads_that_there_is_not_is_one_sentence(
    flag: str, value: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["translate", "nowhere", f"{flag}={value}"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {flag} {value} ") and reason in said and said.count("\n") == 1

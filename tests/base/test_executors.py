"""What SLURM's executor needs is looked for before it is used: its commands, and a controller that answers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from heads.base import executors
from heads.base.executors import SLURM, check_executor
from heads.base.files import UserError, write_text

Commands = Callable[..., None]


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """Make a machine with these commands of SLURM and no other, each of which runs these lines of shell."""

    def made(**lines: str) -> None:
        for name, line in lines.items():
            write_text(tmp_path / name, f"#!/bin/sh\n{line}\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return made


ANSWERS = "echo PARTITION AVAIL"


def said() -> str:
    with pytest.raises(UserError) as error:
        check_executor("slurm")
    return str(error.value)


@pytest.mark.parametrize("missing", SLURM)
def test_a_command_that_is_missing_is_named_with_the_way_out(commands: Commands, missing: str) -> None:
    commands(**{name: ANSWERS for name in SLURM if name != missing})
    assert f"from here ({missing} is not on PATH): leave out --profile" in said()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("echo 'sinfo: error: first' >&2; echo 'no configuration' >&2; exit 1", "no configuration"),
        ("exit 3", "sinfo ends with status 3"),
        ("exec /bin/sleep 60", "sinfo does not answer within 0.3 seconds"),
    ],
)
def test_a_controller_that_does_not_answer_is_one_sentence_with_the_reason(
    commands: Commands, line: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands(**dict.fromkeys(SLURM, ANSWERS) | {"sinfo": line})
    monkeypatch.setattr(executors, "SECONDS", 0.3)
    assert f"from here ({why}): leave out --profile" in said() and "\n" not in said()


def test_a_cluster_that_answers_and_every_other_executor_pass(commands: Commands) -> None:
    commands()
    for name in ("local", "dryrun", "touch", "slurm-jobstep"):
        check_executor(name)
    commands(**dict.fromkeys(SLURM, ANSWERS))
    check_executor("slurm")

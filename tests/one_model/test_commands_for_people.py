"""`heads --help` shows commands for people first and keeps stages of the workflow out of their way."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import heads
from heads.__main__ import FOR_PEOPLE, GROUPS, main
from heads.one_model.inspecting import inspect


def test_help_fits_on_a_screen_and_names_every_command_for_people_in_its_group(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    groups = [line.removesuffix(":") for line in lines if line.removesuffix(":") in GROUPS]
    assert groups == [*GROUPS]
    for group, names in GROUPS.items():
        first = lines.index(f"{group}:") + 1
        assert [line.split()[0] for line in lines[first : first + len(names)]] == [*names]
    assert not any(stage in " ".join(lines).split() for stage in ("lrp", "roles", "maps"))


def test_a_stage_is_called_with_and_without_the_word(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for words in (["stage", "gates", "--help"], ["gates", "--help"]):
        with pytest.raises(SystemExit):
            main(words)
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert "--start-model" in said[0]
    with pytest.raises(SystemExit):
        main(["stage", "--help"])
    told = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    stages = {path.stem for path in (Path(heads.__file__).parent / "cli").glob("[!_]*.py")} - {*FOR_PEOPLE}
    lines = {name: what for name, what in told if name in {*stages, *FOR_PEOPLE}}
    assert {*lines} == stages
    assert lines["gates"].startswith("Fine-tune a trained model with gates on one scope of heads")


ENDLESS = """
import sys
from heads.__main__ import main
from heads.cli import keep
keep.run = lambda: print("words\\n" * 10**6)
sys.exit(main(["keep"]))
"""


def test_a_reader_who_has_seen_enough_is_no_error() -> None:
    command = [shlex.quote(word) for word in (sys.executable, "-c", ENDLESS)]
    environment = {**os.environ, "PYTHONPATH": str(Path(heads.__path__[0]).parent)}
    done = subprocess.run(
        [f"{' '.join(command)} | head -n 1"],
        shell=True, env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("words\n", "")


@pytest.mark.parametrize("name", ["inspect", "prune", "translate", "import", "export"])
def test_the_help_of_a_command_for_people_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert f"\nheads {name} " in capsys.readouterr().out


def test_the_package_has_two_functions_and_is_light_until_they_are_asked_for() -> None:
    assert heads.inspect is inspect
    assert heads.__all__ == ["inspect", "load"]
    with pytest.raises(AttributeError):
        heads.gates  # noqa: B018
    code = "import sys, heads; sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    folder = Path(heads.__path__[0]).parent
    assert subprocess.run([sys.executable, "-c", code], cwd=folder, check=False, timeout=100).returncode == 0

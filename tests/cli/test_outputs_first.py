"""Every command checks the outputs that its flags name before it reads or computes anything."""

import pkgutil
from pathlib import Path

import pytest

from heads import cli
from heads.__main__ import command, main
from heads.cli._signature import outputs_of

COMMANDS = sorted(one.name for one in pkgutil.iter_modules(cli.__path__) if not one.name.startswith("_"))
WRITING_NOTHING = {"translate", "progress"}
"""They write to the standard output, or let Snakemake write."""


@pytest.mark.parametrize("name", COMMANDS)
def test_each_flag_that_names_something_to_write_is_known_as_an_output(name: str) -> None:
    module, parser = command(name, "heads")
    writing = {
        action.dest
        for action in parser._actions
        if any(word in str(action.help) for word in ("to write", "to keep it in")) or action.dest.startswith("out")
    }
    # The form or the split of what is written is not an output itself.
    assert {*outputs_of(module.run)} == writing - {"format", "split"}
    assert writing or name in WRITING_NOTHING


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", "no-model", "no-text", "-o", "folder"],
        ["inspect", "no-model", "no-text", "-o", "file/heads.html"],
        ["prune", "no-model", "no-text", "--keep", "3", "-o", "folder"],
        ["export", "no-model", "-o", "folder"],
        ["import", "no-model", "-o", "file"],
        ["compared", "--settings", "{}", "--baseline", "b", "--references", "r", "--out", "folder"],
        ["encode", "--text", "a", "b", "--bpe", "a.model", "b.model", "--tokens", "new", "folder"],
        ["pruned", "--start-model", "m", "--gates", "g", "--model", "file", "--heads", "heads.tsv"],
        ["keep", "--experiment", "none", "--to", "file"],
    ],
)
def test_it_is_said_before_anything_else_that_is_wrong(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").touch()
    assert main(words) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: f") and said.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == [tmp_path / "file", tmp_path / "folder"]

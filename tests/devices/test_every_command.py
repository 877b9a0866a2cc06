"""Every command that runs a model does on a GPU, here the stand-in, what it does on the CPU."""

from collections.abc import Callable
from pathlib import Path

import pytest
import standin
import torch
import yaml
from cases import CASES
from commands import COMMANDS, Case, flags_of, run, usual_flags
from compared import assert_alike, assert_finite, content_of, files_of
from experiments import WORDS, Place, write_place

from heads.__main__ import FOR_PEOPLE
from heads.base.files import write_text
from heads.config.trainings import ParserSettings
from known_experiment import command as call
from slow_ones import slow_but

Made = Callable[[str], Path]
Places = Callable[[str], Place]
NEEDED = {
    "masking_curve": ("importance", "ablation"),
    **dict.fromkeys(("masked by surgeon", "selected by surgeon"), ("surgeon",)),
}
"""What commands, or cases of them, on the CPU have to write first."""
NOT_OF_DEVICES = {
    *("help", "prefix", "source_language", "target_language", "format", "labels", "tokenize", "metric"),
    "max_subwords",
}
"""Flags for people that change only what is read before the model runs, or written after it."""
QUICK = ("gates", "score", "importance", "ablation of labels")
"""Cases that `make test` tries."""
pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """The experiment of a kind of model, written when it is first asked for."""
    written: dict[str, Place] = {}

    def of(kind: str) -> Place:
        if kind not in written:
            written[kind] = write_place(tmp_path_factory.mktemp("experiments") / kind, kind)
        return written[kind]

    return of


@pytest.fixture
def on_cpu(place: Places, small_measures: None) -> Made:
    """What a case writes on the CPU, when it is first asked for."""

    def made(name: str) -> Path:
        case = CASES[name]
        at = place(case.kind)
        if name not in at.made:
            for needed in NEEDED.get(name, NEEDED.get(case.command, ())):
                made(needed if at.kind == WORDS else f"{needed} of {at.kind}")
            at.made[name] = run(case, at, at.folder / "made" / name, "cpu")
        return at.made[name]

    return made


@pytest.mark.parametrize("name", slow_but(QUICK, CASES))
def test_a_command_writes_what_it_writes_on_the_cpu(
    name: str, on_cpu: Made, place: Places, gpu: torch.device, tmp_path: Path
) -> None:
    wanted, case = on_cpu(name), CASES[name]
    before = standin.operations
    found = run(case, place(case.kind), tmp_path / "out", "cuda")
    assert standin.operations > before, "nothing was computed there"
    assert files_of(found) == files_of(wanted) > {"settings.yaml"}
    for file in sorted(files_of(found)):
        content = content_of(found / file)
        if case.alike:
            assert_alike(content, content_of(wanted / file), file)
        assert_finite(content, file)


def test_no_command_that_runs_a_model_is_left_out() -> None:
    assert {case.command for case in CASES.values()} == {*COMMANDS} > {"baseline", "causal", "translate"}


@pytest.mark.parametrize("name", [name for name in FOR_PEOPLE if name in COMMANDS])
def test_every_flag_for_people_is_in_some_case(name: str, place: Places, tmp_path: Path) -> None:
    mine = [case for case in CASES.values() if case.command == name]
    given = {flag for case in mine for flag in {**usual_flags(name, place(case.kind), tmp_path), **case.flags}}
    assert not {flag.name for flag in flags_of(name)} - NOT_OF_DEVICES - given - {"device", "threads", "stanza"}


@pytest.mark.parametrize("name", slow_but(["parser", "parser_model"], ["parser", "parser_model", "inspect"]))
def test_stanza_is_told_where_to_run(
    name: str, place: Places, small_measures: None, gpu: torch.device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heads.cli import parser, parser_model
    from heads.syntax import parsing

    told: list[torch.device] = []
    for module, function in ((parser, "open_models"), (parser_model, "train_models"), (parsing, "open_models")):
        monkeypatch.setattr(module, function, lambda *given: told.append(given[-1]))
    for module in (parser, parsing):
        monkeypatch.setattr(module, "parse", lambda _, sentences: sentences)
    write_text(tmp_path / "s.yaml", yaml.safe_dump({"parser": ParserSettings().model_dump()}))
    own = {"parser": {"parsed": tmp_path / "parsed"}, "parser_model": {"settings": tmp_path / "s.yaml"}}
    if name == "inspect":
        run(Case(name, flags={"stanza": "xx"}), place(WORDS), tmp_path / "out", "cuda")
    else:
        trees = place(WORDS).folder / "trees.conllu"
        call(name, trees=trees, model=tmp_path, language="xx", device="cuda", **own[name])
    assert told == [gpu]

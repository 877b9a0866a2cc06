"""The signature of a stage is its command line: each parameter is a flag, which arrives under its own name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from heads.base.outputs import FILE, FOLDER, Output
from heads.cli._signature import OneOf, Written, called, outputs_of, parser_of


@dataclass(frozen=True, kw_only=True)
class Both:
    """Two flags."""

    seed: Annotated[int, "a seed"]
    half_way: Annotated[float, "a share"] = 0.5


@dataclass(frozen=True, kw_only=True)
class More(Both):
    """And a third."""

    maybe: Annotated[Path | None, {"nargs": "?"}, "perhaps a path"] = None


def stage(
    first: Annotated[str, "a word"],
    rest: Annotated[Sequence[str], "further words"] = (),
    /,
    *,
    wide: Annotated[bool, "so it is"] = False,
    tables: Annotated[Sequence[Path], Written(), "tables to write"],
    group: More,
    out_folder: Annotated[Path | None, "-o", Written(FOLDER), "folder to write"] = None,
    lines: Annotated[Sequence[int], "numbers"] = (),
    side: Annotated[str, {"choices": ("left", "right")}, "a side"] = "left",
    keep: Annotated[int | None, OneOf("size"), "so many"] = None,
    loss: Annotated[float | None, OneOf("size"), "so much"] = None,
) -> dict[str, Any]:
    return {**locals(), "group": vars(group)}


NEEDED = ["a", "--tables", "x", "y", "--seed", "3"]
UNSAID = {
    **{"first": "a", "rest": (), "wide": False, "tables": [Path("x"), Path("y")], "out_folder": None, "lines": ()},
    **{"side": "left", "keep": None, "loss": None, "group": {"seed": 3, "half_way": 0.5, "maybe": None}},
}


def result(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = called(stage, vars(parser_of(stage, "heads stage", "").parse_args(words)))
    return found


def test_what_has_no_default_has_to_be_given_and_is_listed_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert result(*NEEDED) == UNSAID
    with pytest.raises(SystemExit):
        result()
    said = capsys.readouterr().err
    assert said.endswith("heads stage: error: the following arguments are required: first, --tables, --seed\n")
    assert said.index("--seed SEED") < said.index("[--wide]")


def test_each_word_arrives_as_the_type_says_under_its_own_name() -> None:
    given = ["a", "b", "c", *NEEDED[1:], "--wide", "-o", "z", "--lines", "4", "5", "--side", "right", "--keep", "6"]
    changed = {"rest": ["b", "c"], "wide": True, "out_folder": Path("z"), "lines": [4, 5], "side": "right", "keep": 6}
    group = {"seed": 3, "half_way": 0.25, "maybe": Path("m")}
    assert result(*given, "--half-way", "0.25", "--maybe", "m") == {**UNSAID, **changed, "group": group}
    assert result(*NEEDED, "--lines", "--maybe") == {**UNSAID, "lines": []}, "as a rule says that there is none"
    assert result(*NEEDED, "--half", "1")["group"]["half_way"] == 1.0, "people may shorten a flag"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--keep 1 --loss 2", "argument --loss: not allowed with argument --keep"),
        ("--side up", "argument --side: invalid choice: 'up' (choose from 'left', 'right')"),
        ("--seed one", "argument --seed: invalid int value: 'one'"),
        ("--tables", "argument --tables: expected at least one argument"),
        ("-o", "argument -o/--out-folder: expected one argument"),
        ("--depth 3", "unrecognized arguments: --depth 3"),
    ],
)
def test_what_is_wrong_is_one_sentence(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        result(*NEEDED, *words.split())
    assert error.value.code == 2
    assert capsys.readouterr().err.endswith(f"heads stage: error: {said}\n")


def test_one_of_two_flags_may_have_to_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    def either(
        *,
        trees: Annotated[str | None, OneOf("words", required=True), "trees"] = None,
        text: Annotated[str | None, OneOf("words", required=True), "text"] = None,
    ) -> None:
        """Reads one of both."""

    with pytest.raises(SystemExit):
        parser_of(either, "heads either", "").parse_args([])
    assert capsys.readouterr().err.endswith("error: one of the arguments --trees --text is required\n")


def test_what_is_written_is_known_with_its_flag_in_full() -> None:
    assert outputs_of(stage) == {"tables": Output("--tables", FILE), "out_folder": Output("--out-folder", FOLDER)}

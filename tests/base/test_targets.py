"""Targets: one text for each, a single order, and no other code that parses the text."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heads.base.files import UserError
from heads.base.methods import METHOD_FILES
from heads.base.targets import ANY, CHOSEN, CONTROL, GATED, Target, number_text

WORKFLOW = Path(__file__).parents[2] / "workflow"
MEASURES = (
    *("example", "example_layer", "token", "token_layer", "batch", "batch_layer", "signed", "signed_layer"),
    *("ablation", "confidence", "lrp", "causal", "surgeon", "optimal", "reversed"),
)
DRAWN = ("random", "stratified")
COUNTS = st.integers(0, 10**6)
PENALTIES = st.decimals(0, 10**9, allow_nan=False, allow_infinity=False, places=12) | st.floats(0, 1e9).map(repr)


def plain(value: Decimal) -> str:
    """A number in plain decimal notation, written digit by digit."""
    whole, rest = divmod(value, 1)
    digits = ""
    while rest:
        digit, rest = divmod(rest * 10, 1)
        digits += str(int(digit))
    return f"{int(whole)}.{digits}" if digits else str(int(whole))


GATES = st.one_of(
    PENALTIES.map(lambda penalty: f"lam-{plain(Decimal(penalty))}"),
    st.lists(COUNTS, min_size=1, max_size=3).map(lambda numbers: "-".join(["keep", *map(str, numbers)])),
    COUNTS.map("dsp-{}".format),
)
CHOICES = st.one_of(
    st.builds("{}-{}".format, st.sampled_from(MEASURES), COUNTS),
    st.builds("{}{}-{}".format, st.sampled_from(DRAWN), COUNTS, COUNTS),
)
TEXTS = GATES | CHOICES
TARGETS = TEXTS.map(Target.parse)


def is_target(text: str) -> bool:
    """Whether the text is a target, by an independent check of the grammar."""
    word, *numbers = text.split("-")
    if word == "lam" and len(numbers) == 1:
        whole, point, rest = numbers[0].partition(".")
        return is_count(whole) and (not point or (bool(rest) and set(rest) <= set("0123456789") and rest[-1] != "0"))
    if not numbers or not all(map(is_count, numbers)):
        return False
    if word == "keep":
        return len(numbers) <= 3
    draws = [word[len(name) :] for name in DRAWN if word[: len(name)] == name]
    known = word in ("dsp", *MEASURES) or any(map(is_count, draws))
    return known and len(numbers) == 1


def is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and str(int(text)) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.05, 5e-2, ".05", "0.050", "5E-2", Decimal("0.0500")], "0.05"),
        ([0, 0.0, -0.0, "0", "0.00", "-0", "0e-9"], "0"),
        ([100, 1e2, "100.0", "1e2", Decimal("1E+2")], "100"),
        ([1e-7, "0.0000001"], "0.0000001"),
        ([0.1 + 0.2], "0.30000000000000004"),
        (["0." + "1" * 50], "0." + "1" * 50),
    ],
)
def test_one_number_is_one_path_however_it_is_written(values: list[Any], text: str) -> None:
    assert {number_text(value) for value in values} == {text}
    targets = {Target.of_penalty(value) for value in values}
    assert {str(target) for target in targets} == {f"lam-{text}"} and len(targets) == 1


@given(st.floats(min_value=0, max_value=1e9))
def test_the_text_of_a_number_is_plain_decimals_and_reads_back_as_the_number(value: float) -> None:
    text = number_text(value)
    assert float(text) == value
    assert set(text) <= set("0123456789.")
    assert number_text(text) == text
    assert Target.of_penalty(value).lam == value


@given(TEXTS)
@example("lam-0.00000000000000000000000000000000000000001234567890123456789")
def test_a_text_is_read_and_printed_back_the_same_and_so_is_what_was_read(text: str) -> None:
    target = Target.parse(text)
    assert str(target) == text
    assert Target.parse(str(target)) == target and hash(Target.parse(text)) == hash(target)
    assert Target.of_columns(*target.columns) == target


@given(st.tuples(TEXTS, st.integers(0, 20), st.text("lamkepdsp019.-_ \n", max_size=2)))
@example(("keep-4-6-8", 10, "-1"))
@example(("random-3", 0, ""))
@example(("lrp2-3", 0, ""))
@example(("optimal_parameters-3", 0, ""))
@example(("keep-", 0, ""))
@example(("keep-\u0663", 0, ""))
@example(("random01-3", 0, ""))
@example(("stratified-3", 0, ""))
@example(("stratified02-3", 0, ""))
@example(("lam-1\n", 0, ""))
def test_what_lies_near_a_target_is_one_with_a_text_of_its_own_or_refused(spoilt: tuple[str, int, str]) -> None:
    text, place, more = spoilt
    text = text[:place] + more + text[place:]
    if is_target(text):
        assert str(Target.parse(text)) == text
    else:
        with pytest.raises(UserError, match=r"is not a target: write lam-0\.05"):
            Target.parse(text)


@given(TEXTS)
def test_a_target_is_of_gates_or_by_a_measure_and_wildcards_take_the_same_ones(text: str) -> None:
    gated = text.startswith(("lam-", "keep-", "dsp-"))
    assert [bool(re.fullmatch(pattern, text)) for pattern in (GATED, CHOSEN, ANY)] == [gated, not gated, True]
    assert Target.parse(text).by_gates == gated and Target.parse(text, by_gates=gated).by_gates == gated
    with pytest.raises(UserError, match="is not a choice of heads" if gated else "is not a target of gates"):
        Target.parse(text, by_gates=not gated)


def test_wildcards_have_no_groups_that_could_clash() -> None:
    assert [re.compile(pattern).groups for pattern in (GATED, CHOSEN, ANY)] == [0, 0, 0]


@pytest.mark.parametrize("text", ["", "lam", "keep-x", "lam-.5", "lam-5e-2", "keep-012", "dsp-1-2", "lam--1", "all-3"])
def test_what_is_no_target_is_one_sentence_that_names_the_ways_to_write_it(text: str) -> None:
    gates = "lam-0.05 with a number of at least 0, keep-12, keep-4-6-8 or dsp-12"
    names = ", ".join([*MEASURES, *DRAWN])
    choices = f"lrp-12 with a number and one of {names}, the last two as random1 and stratified1"
    said = {None: f"target: write {gates}, or {choices}.", True: f"target of gates: write {gates}.",
            False: f"choice of heads: write {choices}."}  # fmt: skip
    for by_gates, sentence in said.items():
        with pytest.raises(UserError) as refused:
            Target.parse(text, by_gates=by_gates)
        assert str(refused.value) == f"{text!r} is not a {sentence}"


@pytest.mark.parametrize(
    ("method", "numbers", "draw"),
    [
        ("lam", (), None), ("lam", (-1,), None), ("lam", (Decimal("NaN"),), None), ("lam", (1, 2), None),
        ("keep", (), None), ("keep", (1, 2, 3, 4), None), ("keep", (Decimal("1.5"),), None), ("keep", (-1,), None),
        ("dsp", (1, 2), None), ("lrp", (3,), 2), ("random", (3,), None), ("random", (3,), -1), ("gates", (3,), None),
        ("stratified", (3,), None), ("stratified", (1, 2, 3), 1),
    ],
)  # fmt: skip
def test_there_is_no_target_without_a_text(method: str, numbers: tuple[Any, ...], draw: int | None) -> None:
    with pytest.raises(UserError, match="is not a target"):
        Target(method, numbers, draw)


def test_targets_stand_in_one_order() -> None:
    right = [
        *("lam-0", "lam-0.0003", "lam-0.02", "lam-0.1", "lam-3", "lam-20"),
        *("keep-27", "keep-12", "keep-12-1-1", "keep-4-8-6", "keep-4-6", "keep-4-6-8", "keep-0"),
        *("dsp-27", "dsp-9", "example-9", "example-3", "example_layer-9", "lrp-9", "optimal-120", "optimal-9"),
        *("reversed-9", "random1-9", "random1-3", "random2-9", "random11-9", "stratified1-3", "stratified2-9"),
    ]
    targets = [Target.parse(text) for text in right]
    assert [str(target) for target in sorted(targets[1::2] + targets[::2])] == right
    assert targets[0] == CONTROL and sorted(targets[::2]) == targets[::2]


@given(TARGETS, TARGETS, TARGETS)
def test_the_order_is_total(a: Target, b: Target, c: Target) -> None:
    assert (a < b) + (b < a) + (a == b) == 1
    assert (a <= b) == (not a > b)
    assert sorted([a, b, c]) == sorted([c, b, a]) == sorted([b, a, c])
    assert not (a < b < c) or a < c


@pytest.mark.parametrize(
    ("text", "lam", "budgets", "draw", "what"),
    [
        ("lam-0", 0.0, (), None, {"by_gates", "hard_concrete", "is_control"}),
        ("lam-0.03", 0.03, (), None, {"by_gates", "hard_concrete", "has_penalty"}),
        ("keep-0", None, (0,), None, {"by_gates", "hard_concrete"}),
        ("keep-4-6-8", None, (4, 6, 8), None, {"by_gates", "hard_concrete"}),
        ("dsp-12", None, (12,), None, {"by_gates"}),
        ("random2-12", None, (12,), 2, set()),
        ("random0-12", None, (12,), 0, set()),
        ("stratified11-12", None, (12,), 11, set()),
        ("optimal-9", None, (9,), None, set()),
    ],
)
def test_a_target_answers_what_its_readers_ask(
    text: str, lam: float | None, budgets: tuple[int, ...], draw: int | None, what: set[str]
) -> None:
    target = Target.parse(text)
    assert (target.lam, target.budgets, target.draw) == (lam, budgets, draw)
    assert {
        name for name in ("by_gates", "hard_concrete", "is_control", "has_penalty") if getattr(target, name)
    } == what


def test_a_choice_is_found_by_the_name_that_settings_and_tables_give_to_its_method() -> None:
    texts = [str(Target.of_choice(*named)) for named in (("gates", 4), ("gates", "4-6-8"), ("dsp", 9), ("lrp", "3"))]
    assert texts == ["keep-4", "keep-4-6-8", "dsp-9", "lrp-3"]
    assert Target.of_choice("random2", 9) == Target("random", (9,), 2)
    assert Target.of_choice("stratified2", 9) == Target("stratified", (9,), 2)
    assert Target.of_columns("", "", "") is None
    assert tuple(METHOD_FILES) == (*MEASURES, *DRAWN)


TELL_TALES = (
    r"""["'](lam|keep|dsp)-""",
    r"""startswith\(\(?["'](lam|keep|dsp|random|stratified)["']""",
    r"""partition\(["']-["']\)|split\(["']-["']\)""",
    r"""rstrip\(["']0123456789""",
    r"""\["lam"\] *[!=]= *["']0|isin\(\(["']{2}, ["']0""",
    r"""\(\?:0\|\[1-9\]""",
)
OTHER_TEXTS = ("training/checkpointing.py", "analysis/lrp/rows.py", "syntax/conllu.py")
"""Modules that split other texts at a hyphen."""


def test_nothing_else_reads_the_text_of_a_target() -> None:
    own = WORKFLOW / "heads/base/targets.py"
    said = own.read_text(encoding="utf-8") + 'startswith("random") rstrip("0123456789") x["lam"] == "0" "keep-"'
    assert all(re.search(tale, said) for tale in TELL_TALES), "each is found where it is"
    files = [*WORKFLOW.glob("heads/**/*.py"), *WORKFLOW.glob("rules/*.smk")]
    assert len(files) > 150
    found = [
        f"{path.relative_to(WORKFLOW)}, line {number}: {line.strip()}"
        for path in files
        if path != own and not path.as_posix().endswith(OTHER_TEXTS)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if any(re.search(tale, line) for tale in TELL_TALES)
    ]
    assert not found

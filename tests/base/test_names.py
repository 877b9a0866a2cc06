"""Names in paths: one number has one text, and a run's folder can be read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heads.base.names import ATTENTION_LABELS, ATTENTIONS, KINDS, SCOPES, Run, number_text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.05, 5e-2, ".05", "0.050", "5E-2"], "0.05"),
        ([0, 0.0, -0.0, "0", "0.00", "-0"], "0"),
        ([100, 1e2, "100.0", "1e2"], "100"),
        ([1e-7, "0.0000001"], "0.0000001"),
        ([0.1 + 0.2], "0.30000000000000004"),
    ],
)
def test_one_number_is_one_path_however_it_is_written(values: list[float | str], text: str) -> None:
    assert {number_text(value) for value in values} == {text}


@given(st.floats(min_value=0, max_value=1e9))
def test_the_text_of_a_number_is_plain_decimals_and_reads_back_as_the_number(value: float) -> None:
    text = number_text(value)
    assert float(text) == value
    assert set(text) <= set("0123456789.")
    assert number_text(text) == text


@pytest.mark.parametrize(
    ("folder", "run"),
    [
        ("baseline/seed-3", Run("baseline", None, None, 3)),
        ("gates/all/lam-0.05/seed-12", Run("gates", "all", "lam-0.05", 12)),
        ("pruned/enc_self/lam-0/seed-1", Run("pruned", "enc_self", "lam-0", 1)),
        ("scratch/all/lam-2/seed-0", Run("scratch", "all", "lam-2", 0)),
        ("pruned/all/keep-4-6-8/seed-2", Run("pruned", "all", "keep-4-6-8", 2)),
        ("selected/all/random3-12/seed-1", Run("selected", "all", "random3-12", 1)),
    ],
)
def test_a_run_is_read_from_its_folder_and_written_back(folder: str, run: Run) -> None:
    assert Run.parse(folder) == run
    assert run.folder == folder


@pytest.mark.parametrize(
    "folder",
    [
        "baseline/all/lam-0.05/seed-1",
        "pruned/seed-1",
        "gates/all/seed-1",
        "gates/all/lam-0.05",
        "base/seed-1",
        "baseline/seed-x",
        "demo/baseline/seed-1",
        "baseline/seed-1/",
        "",
    ],
)
def test_what_is_no_folder_of_a_run_is_refused(folder: str) -> None:
    with pytest.raises(ValueError, match="not the folder of a run"):
        Run.parse(folder)


def test_every_kind_of_attention_has_a_label_and_every_scope_names_kinds_that_exist() -> None:
    assert set(ATTENTION_LABELS) == set(ATTENTIONS)
    assert all(set(kinds) <= set(ATTENTIONS) for kinds in SCOPES.values())
    runs = ["baseline/seed-1", *(f"{kind}/all/lam-1/seed-1" for kind in KINDS if kind != "baseline")]
    assert tuple(Run.parse(folder).kind for folder in runs) == KINDS

"""Runs: a folder is read back, and tables identify it by its columns."""

import re

import pytest

from heads.base.names import ATTENTION_LABELS, ATTENTIONS, KINDS, SCOPES
from heads.base.runs import SCORED_RUN, Run, run_of


@pytest.mark.parametrize(
    ("folder", "columns"),
    [
        ("baseline/seed-3", ("baseline", "", "", "", "", 3)),
        ("gates/enc_self/lam-0.05/seed-12", ("gates", "enc_self", "", "0.05", "", 12)),
        ("pruned/all/lam-0/seed-0", ("pruned", "all", "", "0", "", 0)),
        ("pruned/all/keep-4-6-8/seed-2", ("pruned", "all", "", "", "4-6-8", 2)),
        ("pruned/all/dsp-9/seed-2", ("pruned", "all", "dsp", "", "9", 2)),
        ("selected/all/random3-12/seed-1", ("selected", "all", "random3", "", "12", 1)),
        ("selected/all/example_layer-9/seed-1", ("selected", "all", "example_layer", "", "9", 1)),
    ],
)
def test_a_run_is_read_from_its_folder_and_written_back_there_and_to_columns_of_tables(
    folder: str, columns: tuple[str | int, ...]
) -> None:
    kind, scope, _, _, _, seed = columns
    run = Run.parse(folder)
    assert (run.kind, run.scope or "", run.seed) == (kind, scope, seed)
    assert str(run.target) == folder.split("/")[2] if scope else run.target is None
    assert run.folder == folder
    names = ("kind", "scope", "method", "lam", "keep", "seed")
    assert run.columns == dict(zip(names, columns, strict=True))


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
        "pruned/all/lam-0.050/seed-1",
        "pruned/all/keep-012/seed-1",
        "selected/all/optimal_parameters-12/seed-1",
        "",
    ],
)
def test_what_is_no_folder_of_a_run_is_refused(folder: str) -> None:
    with pytest.raises(ValueError, match="not the folder of a run"):
        Run.parse(folder)


def test_folders_from_before_are_read_as_runs_of_the_kinds_of_now() -> None:
    found = [run_of(f"results/demo/penalty_{kind}/all/lam-0.1/seed-2") for kind in ("gates", "scratch")]
    assert [run.folder for _, run in found] == [
        "gates_from_scratch/all/lam-0.1/seed-2",
        "pruned_from_scratch/all/lam-0.1/seed-2",
    ]


def test_every_kind_of_attention_has_a_label_and_every_scope_names_kinds_that_exist() -> None:
    assert set(ATTENTION_LABELS) == set(ATTENTIONS)
    assert all(set(kinds) <= set(ATTENTIONS) for kinds in SCOPES.values())
    runs = ["baseline/seed-1", *(f"{kind}/all/lam-1/seed-1" for kind in KINDS if kind != "baseline")]
    assert tuple(Run.parse(folder).kind for folder in runs) == KINDS


@pytest.mark.parametrize(
    ("folder", "scored"),
    [
        ("baseline/seed-1", True),
        ("pruned/enc_self/keep-3/seed-2", True),
        ("scratch/all/lam-0.1/seed-1", True),
        ("pruned_from_scratch/all/lam-0.1/seed-1", True),
        ("selected/all/lrp-9/seed-1", True),
        ("selected/all/lam-0/seed-1", True),
        ("selected/enc_self/lam-0/seed-1", False),
        ("gates/all/lam-0.1/seed-1", False),
        ("pruned/all/lrp-9/seed-1", False),
        ("pruned/all/lam-.1/seed-1", False),
        ("baseline/seed-01", False),
    ],
)
def test_what_is_scored_is_every_model_with_its_own_heads(folder: str, scored: bool) -> None:  # noqa: FBT001
    assert bool(re.fullmatch(SCORED_RUN, folder)) == scored


def test_a_folder_tells_its_experiment_and_run() -> None:
    experiment, run = run_of("results/demo/pruned/all/lam-0.05/seed-3")
    assert (experiment, run.kind, run.scope, str(run.target), run.seed) == ("demo", "pruned", "all", "lam-0.05", 3)
    assert run_of("x/demo/baseline/seed-1")[0] == "demo"
    with pytest.raises(ValueError, match="seed-1"):
        run_of("baseline/seed-1")

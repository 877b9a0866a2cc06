"""The runs of the plan for small settings, and what tables read of them, against lists written by hand."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from plans import EXPERIMENTS, NOTHING, below, plan

from heads.base.files import UserError, write_text
from heads.base.names import KINDS
from heads.base.runs import Need
from heads.config.plan import Plan
from heads.config.settings import merged
from heads.tables.catalogue import FIGURES, TABLES, Made

SWEPT = {
    "seeds": [2, 1],
    "lambdas": {"enc_self": [0.5], "all": [4, 0.25]},
    "budgets": {"all": [48]},
    "scratch_scopes": ["all"],
    "gates_from_scratch_scopes": ["enc_self"],
}


CHOSEN = {
    "lambdas": {"all": [0.25]},
    "selection": {
        "methods": ["random", "lrp", "optimal"],
        "budgets": [48, 24],
        "fine_tuned": {"methods": ["gates", "random", "dsp", "lrp"], "budgets": [24]},
    },
}


def test_choices_of_heads_are_compared_where_some_are_made_and_nowhere_else() -> None:
    """Otherwise a job would score nothing, and a table and a figure would have no rows."""
    need = TABLES["selection"].need
    read = {
        "nothing": plan(),
        "gates": plan(SWEPT),
        "chosen": plan(CHOSEN),
        "fine-tuned": plan(merged(CHOSEN, {"selection": {"methods": []}})),
        "alike": plan({**SWEPT, "trained_on_scopes": ["all"]}),
    }
    compared = {name: bool(asked.runs_read(need, ["one"])) for name, asked in read.items()}
    assert compared == {"nothing": False, "gates": False, "chosen": True, "fine-tuned": True, "alike": True}


def test_runs_stand_by_kind_scope_and_target_with_the_control_first_and_every_seed() -> None:
    of = {kind: plan(SWEPT).run_folders("one", [kind]) for kind in KINDS}
    seeds = ("seed-2", "seed-1")
    swept = ["enc_self/lam-0", "enc_self/lam-0.5", "all/lam-0", "all/lam-0.25", "all/lam-4", "all/keep-48"]
    assert of["baseline"] == below("results/one/baseline", *seeds)
    for kind in ("gates", "pruned"):
        assert of[kind] == [f"results/one/{kind}/{target}/{seed}" for target in swept for seed in seeds]
    assert of["scratch"] == [f"results/one/scratch/all/{t}/{seed}" for t in ("lam-0.25", "lam-4") for seed in seeds]
    for kind in ("gates_from_scratch", "pruned_from_scratch"):
        assert of[kind] == [f"results/one/{kind}/enc_self/lam-0.5/{seed}" for seed in seeds]
    assert of["selected"] == []
    order = ("baseline", "gates", "pruned", "scratch", "gates_from_scratch", "pruned_from_scratch")
    assert plan(SWEPT).run_folders("one", KINDS) == [folder for kind in order for folder in of[kind]]
    scored = [folder for kind in order if "gates" not in kind for folder in of[kind]]
    assert plan(SWEPT).run_folders("one") == scored


def test_from_scratch_are_only_those_lambdas_of_a_scope_that_are_named() -> None:
    some = {**SWEPT, "seeds": [1], "scratch_scopes": ["enc_self", "all"], "scratch_lambdas": {"all": [4]}}
    from_scratch = plan(some).run_folders("one", ["scratch"])
    assert from_scratch == [f"results/one/scratch/{target}/seed-1" for target in ("enc_self/lam-0.5", "all/lam-4")]
    assert plan({**some, "scratch_lambdas": {"all": [], "enc_self": []}}).run_folders("one", ["scratch"]) == []
    others = ["gates", "gates_from_scratch", "pruned_from_scratch"]
    assert plan(some).run_folders("one", others) == plan({**some, "scratch_lambdas": {}}).run_folders("one", others)


def test_choices_are_trained_on_beside_a_control_and_those_by_gates_have_gates_of_their_own() -> None:
    asked = plan(CHOSEN)
    gates = ["lam-0", "lam-0.25", "keep-24", "dsp-24"]
    chosen = ["lam-0", "keep-24", "random1-24", "random2-24", "dsp-24", "lrp-24"]
    assert asked.run_folders("one", ["gates"]) == [f"results/one/gates/all/{target}/seed-1" for target in gates]
    assert asked.run_folders("one", ["selected"]) == [f"results/one/selected/all/{c}/seed-1" for c in chosen]


def test_lambdas_are_trained_on_where_that_is_asked_for_with_the_control_once() -> None:
    asked = plan({"lambdas": {"all": [4, 0.25]}, "trained_on_scopes": ["all"]})
    folders = asked.run_folders("one", ["selected"])
    assert folders == [f"results/one/selected/all/{target}/seed-1" for target in ("lam-0", "lam-0.25", "lam-4")]


def test_a_baseline_is_timed_with_models_pruned_from_it_in_the_widest_scope_by_hard_concrete_gates() -> None:
    asked = plan({**CHOSEN, "seeds": [1, 2], "lambdas": {"enc_self": [0.5], "all": [0.25]}})
    whole = [f"results/one/pruned/all/{target}/seed-2" for target in ("lam-0", "lam-0.25", "keep-24")]
    assert asked.timed_with("one", "2") == whole
    narrow = plan({"seeds": [1, 2], "lambdas": {"enc_self": [0.5]}})
    assert narrow.timed_with("one", "1") == [f"results/one/pruned/enc_self/{t}/seed-1" for t in ("lam-0", "lam-0.5")]
    assert plan().timed_with("one", "1") == []


def test_a_table_reads_files_of_runs_in_its_scopes_and_skips_what_an_experiment_lacks() -> None:
    asked = plan({"seeds": [1, 2], "lambdas": {"enc_self": [0.5], "all": [4]}}, **EXPERIMENTS)
    needed = Need(("enc_self",), {"baseline": ("a.tsv", "roles.tsv"), "gates": ("heads.tsv",)}, (), syntactic=True)
    baselines = {name: f"results/{name}/baseline/seed-1" for name in EXPERIMENTS}
    one = below("results/one/baseline", "seed-1", "seed-2")
    one += [f"results/one/gates/enc_self/{target}/seed-{seed}" for target in ("lam-0", "lam-0.5") for seed in (1, 2)]
    assert asked.runs_read(needed, ["full", "bare", "one"]) == [baselines["full"], *one]
    assert asked.inputs_read(needed, ["one", "bare"]) == [
        *(f"{folder}/{name}" for folder in one[:2] for name in ("a.tsv", "roles.tsv")),
        *(f"{folder}/heads.tsv" for folder in one[2:]),
    ]
    alignment = "alignment_heads.tsv"
    optional = Need((), {"baseline": ("ablation.out_of_domain.tsv", alignment, "b.tsv")}, (), optional=(alignment,))
    assert asked.runs_read(optional, ["bare", "full"]) == [baselines["bare"], baselines["full"]]
    files = below(baselines["full"], "ablation.out_of_domain.tsv", alignment, "b.tsv")
    assert asked.inputs_read(optional, ["bare", "full", "given"]) == [
        f"{baselines['bare']}/b.tsv",
        *files,
        f"{baselines['given']}/b.tsv",
    ]


def test_a_table_of_other_experiments_names_those_that_have_what_it_is_made_of() -> None:
    asked = plan({"seeds": [1]}, **EXPERIMENTS)
    needed = Need((), {"baseline": ("roles.tsv",)}, (), syntactic=True)
    assert asked.inputs_asked("table_dependencies", needed, ["bare", "full"]) == asked.inputs_read(needed, ["full"])
    others = r"one or held or full"
    with pytest.raises(UserError, match=rf"^table_dependencies is not available for bare: make it for {others}\.$"):
        asked.inputs_asked("table_dependencies", needed, ["bare"])
    with pytest.raises(UserError, match=r"for bare, full: make it for others\.$"):
        asked.inputs_asked("x", Need((), {"baseline": ("x",)}, (), tasks=("none",)), ["bare", "full"])


def test_attention_is_shown_on_the_trees_that_decide_and_without_any_on_the_dev_text() -> None:
    asked = plan(**EXPERIMENTS)
    shown = {name: asked.sentences_shown(name) for name in EXPERIMENTS}
    assert shown.pop("bare") == f"{asked.corpus_of('bare')}/dev.source.txt"
    assert shown == {name: next(iter(asked.tree_files(name).values())) for name in shown}
    assert shown["held"].endswith("held/parser/own.conllu") and shown["gold"].endswith("/dev.conllu")


def test_without_trees_all_is_made_but_what_is_about_relations() -> None:
    asked = plan(**EXPERIMENTS)
    made: list[tuple[str, Made]] = [*TABLES.items(), *FIGURES.items()]
    lacking = {name for name, one in made if asked.runs_read(one.need, ["held"])} - {
        name for name, one in made if asked.runs_read(one.need, ["bare"])
    }
    assert lacking == {"dependencies", "dependency_scores", "relative_positions"}


def targets_cut_down(asked: Plan) -> list[str]:
    """The targets of the experiment `theirs` to whose heads the baseline is cut down."""
    return [str(run.target) for run in asked.runs("theirs", ["selected"])]


def imported_plan(folder: Path, sweep: Mapping[str, Any], **config: Any) -> Plan:
    """A plan whose experiment `theirs` starts from an imported model with this config.json."""
    write_text(folder / "config.json", json.dumps(config))
    return plan({}, theirs={"corpus": "plain", "baseline": {"pretrained": str(folder)}, "sweep": {**NOTHING, **sweep}})


THEIR_SIZES = {"encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 5}


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        ({"budgets": {"all": [38, 39]}}, "sweep.budgets.all has 39, which asks for 39 of the 38 heads of enc_self and"),
        (
            {"budgets": {"enc_self": [8, 9]}},
            "sweep.budgets.enc_self has 9, which asks for 9 of the 8 heads of enc_self",
        ),
        ({"budgets": {"all": ["8-15-15", "8-16-9"]}}, "all has 8-16-9, which asks for 16 of the 15 heads of dec_self:"),
        ({"budgets": {"all": ["39"]}}, "sweep.budgets.all has 39, which asks for 39 of the 38 heads of enc_self and"),
        ({"selection": {"methods": ["lrp"], "budgets": [39]}}, "selection.budgets has 39, but the model has 38 heads"),
    ],
)
def test_numbers_of_heads_are_held_against_a_model_of_others_once_it_is_asked_for(
    sweep: dict[str, Any], said: str, tmp_path: Path
) -> None:
    whole = merged(NOTHING, sweep)
    asked = imported_plan(tmp_path, whole, **THEIR_SIZES)
    with pytest.raises(UserError) as told:
        asked.pretrained_files("theirs")
    assert str(told.value).startswith("experiments.theirs.") and said in str(told.value)
    more = imported_plan(tmp_path, whole, **{**THEIR_SIZES, "encoder_layers": 3, "decoder_attention_heads": 6})
    assert more.pretrained_files("theirs") == [str(tmp_path / "config.json")]


SHARES: dict[str, Any] = {
    "budgets": {"enc_self": ["50%"], "all": ["25%", 30]},
    "selection": {"methods": ["lrp"], "budgets": ["50%"], "fine_tuned": {"methods": ["dsp"], "budgets": ["75%"]}},
}


def test_a_share_is_of_the_heads_of_the_model_of_others(tmp_path: Path) -> None:
    asked = imported_plan(tmp_path, merged(NOTHING, SHARES), **THEIR_SIZES)
    # 8 encoder heads and 38 in all; shares of the latter are 9.5, 19 and 28.5.
    pruned = [folder.split("/", 2)[2] for folder in asked.run_folders("theirs", ["pruned"])]
    assert pruned == [
        *(f"pruned/enc_self/{target}/seed-1" for target in ("lam-0", "keep-4")),
        *(f"pruned/all/{target}/seed-1" for target in ("lam-0", "keep-10", "keep-30", "dsp-29")),
    ]
    assert asked.choices("theirs") == ["lrp-19"] and targets_cut_down(asked) == ["lam-0", "dsp-29"]
    trained_on = merged(SHARES, {"lambdas": {"all": [0.5]}, "trained_on_scopes": ["all"]})
    more = imported_plan(tmp_path, merged(NOTHING, trained_on), **THEIR_SIZES)
    assert targets_cut_down(more) == ["lam-0", "dsp-29", "lam-0.5"]


def test_shares_want_a_folder_that_tells_how_many_heads_there_are_and_numbers_do_not(tmp_path: Path) -> None:
    silent = imported_plan(tmp_path / "silent", merged(NOTHING, SHARES))
    said = r"^experiments\.theirs\.sweep has shares of heads, but .*silent does not say how many .*: copy it from"
    with pytest.raises(UserError, match=said):
        silent.run_folders("theirs")
    for sweep in (SHARES, {"budgets": {"all": [30]}}):
        absent = imported_plan(tmp_path / "gone", merged(NOTHING, sweep), **THEIR_SIZES)
        (tmp_path / "gone/config.json").unlink()
        (tmp_path / "gone").rmdir()
        if sweep is SHARES:
            with pytest.raises(
                UserError, match=r"^experiments\.theirs\.baseline\.pretrained: .* is no folder: give one"
            ):
                absent.run_folders("theirs")
        else:
            assert "results/theirs/pruned/all/keep-30/seed-1" in absent.run_folders("theirs")


@pytest.mark.parametrize("config", [{}, {**THEIR_SIZES, "decoder_layers": "three"}])
def test_a_configuration_that_tells_no_numbers_of_heads_is_left_to_the_import(
    config: dict[str, Any], tmp_path: Path
) -> None:
    asked = imported_plan(tmp_path, {"budgets": {"all": [1000]}}, **config)
    assert asked.pretrained_files("theirs") == [str(tmp_path / "config.json")]

"""Settings: one place, each stage given its own, experiments laid over defaults, sweeps in numbers of heads."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from plans import changed
from sacrebleu.metrics import BLEU

from heads.base.files import UserError
from heads.base.methods import METHOD_FILES
from heads.base.names import SCOPES, TOKENISERS
from heads.config.experiment import ChoiceSettings, Experiment, FineTunedSettings, SweepSettings
from heads.config.settings import STAGE_SECTIONS, merged, resolve, stage_settings
from heads.config.sweep import choices, targets

CLASSES: dict[str, Any] = {
    name: one.annotation for name, one in Experiment.model_fields.items() if name not in ("corpus", "sweep", "tokenize")
}


def test_every_section_but_the_sweep_is_told_to_some_stage_and_the_sweep_to_none(config: dict[str, Any]) -> None:
    told = {name for sections in STAGE_SECTIONS.values() for name in sections}
    assert told == set(CLASSES)
    experiment = resolve(config)["demo"]
    assert {*Experiment.model_fields} - told == {"corpus", "sweep", "tokenize"}
    for stage in STAGE_SECTIONS:
        assert set(stage_settings(experiment, stage)) <= told


COMMAND_OF = {"parser": "parser_model"}
"""Commands that are not named like their stage."""


def sections_read(command: str) -> set[str]:
    """The sections that a command reads from its settings, found in its source code."""
    path = Path(__file__).parents[2] / f"workflow/heads/cli/{command}.py"
    return {*re.findall(r'section\(\w+, (?:given\.)?settings\["(\w+)"\]\)', path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("stage", STAGE_SECTIONS)
def test_a_stage_is_told_the_sections_that_its_command_reads_and_no_other(config: dict[str, Any], stage: str) -> None:
    experiment = resolve(config)["multi30k"]
    expected = {name: dict(experiment.written[name]) for name in sections_read(COMMAND_OF.get(stage, stage))}
    if stage == "baseline":
        # A training does not get the settings for imports, so that adding these does not make it run again.
        of_imports = (
            *("pretrained", "fine_tuning_updates", "decoder", "new_weights_rate", "labels", "prefix"),
            *("source_language", "target_language"),
        )
        assert [expected["baseline"].pop(key) for key in of_imports] == ["", 0, "", 10.0, [], "", "", ""]
    assert stage_settings(experiment, stage) == expected


def test_a_stage_is_told_numbers_as_they_are_written_so_that_it_is_not_made_again(config: dict[str, Any]) -> None:
    changed(config, "training.learning_rate", 1)
    changed(config, "training.label_smoothing", 0.0)
    changed(config, "gates.hard_concrete", {"low": -1, "log_alpha_init": 3})
    whole = merged(config["defaults"], config["experiments"]["demo"])
    told = json.dumps(stage_settings(resolve(config)["demo"], "gates"), sort_keys=True)
    assert told == json.dumps({name: whole[name] for name in ("training", "gates")}, sort_keys=True)
    assert all(f'{key}, "' in told for key in ('"learning_rate": 1', '"label_smoothing": 0.0', '"low": -1'))


def test_every_stage_that_computes_bleu_is_told_a_named_tokeniser_and_no_other_stage(config: dict[str, Any]) -> None:
    config["experiments"]["multi30k"]["tokenize"] = "zh"
    named, unnamed = resolve(config)["multi30k"], resolve(config)["demo"]
    for stage in STAGE_SECTIONS:
        path = Path(__file__).parents[2] / f"workflow/heads/cli/{COMMAND_OF.get(stage, stage)}.py"
        asked = any(word in path.read_text(encoding="utf-8") for word in ("tokeniser_named(", "read_text(*given.text)"))
        assert stage_settings(named, stage).get("tokenize") == ("zh" if asked else None), stage
        assert "tokenize" not in stage_settings(unnamed, stage), "what was made before this setting is not made again"


def test_the_tokenisers_are_those_of_sacrebleu(config: dict[str, Any]) -> None:
    assert set(TOKENISERS) == {"auto", *BLEU.TOKENIZERS}
    config["experiments"]["demo"]["tokenize"] = "ja_mecab"
    with pytest.raises(UserError, match=r"experiments\.demo\.tokenize .*ja-mecab"):
        resolve(config)


def test_every_experiment_of_the_project_resolves_and_fills_its_classes(config: dict[str, Any]) -> None:
    experiments = resolve(config)
    assert set(experiments) == set(config["experiments"])
    for experiment in experiments.values():
        for name, kind in CLASSES.items():
            assert isinstance(getattr(experiment, name), kind)
            assert {*kind.model_fields} == {*experiment.written[name]}


def test_an_experiment_is_the_defaults_with_its_changes_laid_over(config: dict[str, Any]) -> None:
    config["experiments"]["plain"] = None
    changed(config, "training.warmup_updates", 17)
    experiments = resolve(config)
    # 144 heads; 60 % of them are 86.4, 90 % are 129.6.
    chosen = {"budgets": [36, 72, 86, 108, 130], "fine_tuned": {"budgets": [36, 72, 108]}}
    numbers = {"sweep": {"budgets": {"all": [36, 72, 108]}, "selection": chosen}}
    plain = merged(config["defaults"], numbers)
    assert experiments["plain"].model_dump(mode="json") == plain
    assert experiments["demo"].training.warmup_updates == 17
    assert experiments["demo"].training.adam_beta2 == config["defaults"]["training"]["adam_beta2"]


def test_lists_are_replaced_whole_and_nothing_given_is_changed() -> None:
    base = {"a": {"list": [1, 2, 3], "kept": 4}, "b": 5, "c": {"d": 6}}
    changes = {"a": {"list": [9]}, "c": 7}
    before = copy.deepcopy((base, changes))
    result = merged(base, changes)
    assert result == {"a": {"list": [9], "kept": 4}, "b": 5, "c": 7}
    result["a"]["list"].append(10)
    assert (base, changes) == before


def test_keys_by_their_old_names_are_read_as_those_of_now(config: dict[str, Any]) -> None:
    old = {
        "baseline": {"keep_at": [3, 5]}, "gates": {"settled_share": 0.25},
        "sweep": {"penalty_scratch_scopes": ["enc_self"]},
    }  # fmt: skip
    new = {
        "baseline": {"checkpoint_updates": [3, 5]}, "gates": {"fixed_gates_share": 0.25},
        "sweep": {"gates_from_scratch_scopes": ["enc_self"]},
    }  # fmt: skip
    config["experiments"] |= {"old": old, "new": new, "plain": None}
    experiments = resolve(config)
    found = {name: experiments[name].model_dump() for name in ("old", "new", "plain")}
    assert found["old"] == found["new"] != found["plain"]
    told = [stage_settings(experiments[name], "gates") for name in ("old", "new")]
    assert told[0] == told[1] and told[0]["gates"]["fixed_gates_share"] == 0.25
    # One that is like another has its own word, whatever that one calls it.
    config["experiments"]["like"] = {"like": "old", "gates": {"fixed_gates_share": 0.5}}
    assert resolve(config)["like"].gates.fixed_gates_share == 0.5
    # Laid over an experiment of the project, an old name is the user's.
    config["experiments"]["new"]["gates"]["settled_share"] = 0.125
    assert resolve(config)["new"].gates.fixed_gates_share == 0.125
    # A file from before has the old names alone, among the defaults too.
    for part, names in (("baseline", "keep_at checkpoint_updates"), ("gates", "settled_share fixed_gates_share")):
        before, now = names.split()
        config["defaults"][part][before] = config["defaults"][part].pop(now)
    assert resolve(config)["old"].model_dump() == found["old"]


def test_an_experiment_that_is_like_another_starts_from_its_changes(config: dict[str, Any]) -> None:
    rate = {"warmup_updates": 7}
    config["experiments"] |= {
        "mine": {"like": "news-en-ru", "corpus": "multi30k", "training": rate},
        "longer": {"like": "mine", "scratch": {"updates": 9000}},
    }
    experiments = resolve(config)
    news, mine, longest = (experiments[name].model_dump() for name in ("news-en-ru", "mine", "longer"))
    assert mine == {**news, "corpus": "multi30k", "training": {**news["training"], **rate}}
    longer = {"scratch": {**news["scratch"], "updates": 9000}}
    assert longest == {**mine, **longer}
    config["experiments"]["news-en-ru"]["model"] = {"dropout": 0.2}
    assert resolve(config)["longer"].model.dropout == 0.2


def test_budgets_seeds_and_what_must_be_kept_may_go_to_their_ends(sized: dict[str, Any]) -> None:
    changed(sized, "sweep.budgets", {"enc_self": [0, 12, "12"], "all": [36, "12-12-12"]})
    changed(sized, "sweep.seeds", [0, 2**31 - 1])
    changed(sized, "sweep.selection.budgets", [9, 36])
    changed(sized, "selection.at_least", {"enc_self": 0, "enc_self.2": 4, "dec_self": 0, "dec_enc": 1, "dec_enc.0": 3})
    assert resolve(sized)["demo"].sweep.seeds == (0, 2147483647)
    changed(sized, "sweep.selection.methods", ["random", "token"])
    resolve(changed(sized, "sweep.selection.budgets", [4]))


@pytest.mark.parametrize(
    ("scope", "given", "numbers"),
    [
        ("all", ["50%", 12, "2-4-6", "100%"], [18, 12, "2-4-6", 36]),
        ("enc_self", ["50%", "25%"], [6, 3]),
        ("all", ["12.5%", "9.7%", "9.8%"], [5, 3, 4]),  # 4.5, 3.492, 3.528
        ("all", ["0.01%"], [1]),
    ],
)
def test_a_share_of_a_scope_is_of_its_heads_rounded_a_half_up_and_never_none(
    sized: dict[str, Any], scope: str, given: list[Any], numbers: list[Any]
) -> None:
    swept = resolve(changed(sized, f"sweep.budgets.{scope}", given))["demo"].sweep
    assert [*swept.budgets[scope]] == numbers


@pytest.mark.parametrize("key", ["selection", "selection.fine_tuned"])
@pytest.mark.parametrize(
    ("method", "given", "numbers"),
    [
        ("lrp", ["25%", "26%", 9, "90%", "10%"], [9, 32, 4]),  # 9, 9.36, 32.4, 3.6
        ("lrp", ["0.01%", "100%", "12"], [1, 36, 12]),
        ("optimal", ["10%", "26%", "50%"], [9, 18]),
    ],
)
def test_shares_of_chosen_heads_that_come_to_one_number_stand_there_once_and_can_hold_what_optimal_keeps(
    sized: dict[str, Any], key: str, method: str, given: list[Any], numbers: list[int]
) -> None:
    changed(sized, f"sweep.{key}.methods", [method])
    selection = resolve(changed(sized, f"sweep.{key}.budgets", given))["demo"].sweep.selection
    assert [*(selection if key == "selection" else selection.fine_tuned).budgets] == numbers


@pytest.mark.parametrize("corpus", ["demo", "inference"])
@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (1, 2), (2, 2), (2, 3), (3, 4), (6, 8), (12, 16)])
def test_an_experiment_of_any_size_says_nothing_of_numbers_of_heads(
    config: dict[str, Any], corpus: str, layers: int, heads: int
) -> None:
    config["experiments"]["mine"] = {"corpus": corpus, "model": {"layers": layers, "heads": heads, "width": 2 * heads}}
    sweep, there = resolve(config)["mine"].sweep, layers * heads * (3 if corpus == "demo" else 1)
    of_choices = (sweep.selection.budgets, sweep.selection.fine_tuned.budgets)
    for numbers in (*sweep.budgets.values(), *of_choices):
        assert (
            numbers and all(1 <= int(number) <= there for number in numbers) and [*numbers] == sorted(numbers, key=int)
        )
    if heads >= 4:
        assert sweep.budgets == {"all": (there // 4, there // 2, there * 3 // 4)}
        assert of_choices[1] == sweep.budgets["all"] and {*of_choices[1]} < {*of_choices[0]}


@pytest.mark.parametrize("values", [[0.05, 0.3, 0], [5e-2, 0.30], [0.3, 0.05]])
def test_targets_are_lambdas_in_rising_order_with_the_control_first_and_then_budgets(values: list[Any]) -> None:
    lambdas: dict[str, Any] = {"all": tuple(values), "enc_self": ()}
    experiment = Experiment(sweep=SweepSettings(lambdas=lambdas, budgets={"all": (12, "4-6-8", "12")}))
    assert [*map(str, targets(experiment, "all"))] == ["lam-0", "lam-0.05", "lam-0.3", "keep-12", "keep-4-6-8"]
    assert targets(experiment, "enc_self") == []


def test_random_choices_stand_for_all_their_draws_at_every_budget() -> None:
    tuned = FineTunedSettings(methods=("gates", "dsp", "random", "stratified"), budgets=(4,))
    selection = ChoiceSettings(methods=("lrp", "random"), budgets=(9, 4), draws=2, fine_tuned=tuned)
    experiment = Experiment(sweep=SweepSettings(selection=selection))
    assert [*map(str, choices(experiment, fine_tuned=True))] == [
        *("keep-4", "dsp-4", "random1-4", "random2-4", "stratified1-4", "stratified2-4"),
    ]
    assert [*map(str, choices(experiment, fine_tuned=False))] == [
        "lrp-9",
        "lrp-4",
        "random1-9",
        "random1-4",
        "random2-9",
        "random2-4",
    ]


def test_scopes_and_methods_that_settings_take_are_those_of_the_names(config: dict[str, Any]) -> None:
    changed(config, "sweep.scratch_scopes", list(SCOPES))
    changed(config, "sweep.selection.methods", list(METHOD_FILES))
    changed(config, "sweep.selection.fine_tuned.methods", ["gates", "dsp", *METHOD_FILES])
    for key in ("methods", "fine_tuned.methods"):
        given = changed(copy.deepcopy(config), f"sweep.selection.{key}", ["confidence"])
        with pytest.raises(UserError, match=r"names the method causal, but causal\.updates is 0: set it"):
            resolve(given)
    changed(config, "causal.updates", 1)
    assert resolve(config)["demo"].sweep.selection.methods == tuple(METHOD_FILES)
    with pytest.raises(UserError, match=r"selection\.methods\.0 is 'gates'"):
        resolve(changed(config, "sweep.selection.methods", ["gates"]))

"""Settings: one place, closed schemas, errors that name the key and the nearest one, each stage given its own."""

from __future__ import annotations

import ast
import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from checkouts import configuration
from heads.base.criteria import MEASURED_IN
from heads.base.files import UserError
from heads.base.names import SCOPES
from heads.config import messages
from heads.config.analyses import ConfidenceSettings
from heads.config.experiment import Experiment
from heads.config.settings import STAGE_SECTIONS, merged, resolve, section, stage_settings
from heads.config.sweep import choices, targets
from heads.config.trainings import GatesSettings, HardConcrete

CLASSES: dict[str, Any] = {
    name: one.annotation for name, one in Experiment.model_fields.items() if name not in ("corpus", "sweep")
}


@pytest.fixture
def config() -> dict[str, Any]:
    """A copy of the project's configuration that a test may change."""
    content = configuration()
    copied: dict[str, Any] = json.loads(json.dumps(content))  # no objects shared through YAML anchors
    return copied


@pytest.fixture
def sized(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with a demo of 3 layers of 4 heads."""
    config["experiments"]["demo"]["model"] |= {"layers": 3, "heads": 4, "width": 64}
    changed(config, "sweep.budgets", {"enc_self": [1, 9], "all": [4, 27]})
    changed(config, "sweep.selection", {"budgets": [9, 27], "fine_tuned": {"methods": ["gates"], "budgets": [9]}})
    return config


def changed(config: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The configuration with one key of the experiment `demo` set."""
    inner = config["experiments"]["demo"]
    *folders, key = path.split(".")
    for folder in folders:
        inner = inner.setdefault(folder, {})
    inner[key] = value
    return config


def test_every_section_but_the_sweep_is_told_to_some_stage_and_the_sweep_to_none(config: dict[str, Any]) -> None:
    told = {name for sections in STAGE_SECTIONS.values() for name in sections}
    assert told == set(CLASSES)
    experiment = resolve(config)["demo"]
    assert set(experiment) - told == {"corpus", "sweep"}
    for stage in STAGE_SECTIONS:
        assert set(stage_settings(experiment, stage)) <= told


SECTIONS_READ = {
    "bpe": {"bpe"},
    "baseline": {"model", "training", "baseline"},
    "imported_bpe": {"baseline"},
    "imported": {"training", "baseline"},
    "gates": {"training", "gates"},
    "selected": {"training", "selected"},
    "penalty_gates": {"training", "gates", "scratch"},
    "scratch": {"training", "scratch"},
    "selection": {"selection"},
    "masked": {"translate", "selection"},
    "compared": {"selection"},
    "score": {"translate"},
    "classified": {"translate"},
    "maps": {"maps", "translate"},
    "parser": {"parser"},
    "dynamics": {"roles", "confidence"},
    "importance": {"importance", "training"},
    "checkpoints": {"checkpoints", "importance", "training"},
    **{stage: {stage} for stage in ("confidence", "lrp", "roles", "speed", "causal", "ablation", "masking_curve")},
    "alignment_heads": {"alignment_heads"},
}
"""The sections that the command of each stage reads; COMMAND_OF lists commands not named like their stage."""
COMMAND_OF = {"parser": "parser_model"}


def sections_read(command: str) -> set[str]:
    """The sections that a command reads from its settings, found in its source code."""
    path = Path(__file__).parents[2] / f"workflow/heads/cli/{command}.py"
    keys = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Subscript)]
    settings = re.compile(r"(content|arguments\.settings)\['(\w+)'\]")
    return {found[2] for key in keys if (found := settings.fullmatch(ast.unparse(key)))}


@pytest.mark.parametrize("stage", STAGE_SECTIONS)
def test_a_stage_is_told_the_sections_that_its_command_reads_and_no_other(config: dict[str, Any], stage: str) -> None:
    assert stage in SECTIONS_READ, f"the stage {stage} is new: say in SECTIONS_READ what its command obeys"
    assert sections_read(COMMAND_OF.get(stage, stage)) == SECTIONS_READ[stage]
    experiment = resolve(config)["multi30k"]
    expected = {name: dict(experiment[name]) for name in SECTIONS_READ[stage]}
    if stage == "baseline":
        # A training does not get the settings for imports, so that adding these does not make it run again.
        of_imports = (
            *("pretrained", "fine_tuning_updates", "decoder", "new_weights_rate", "labels", "prefix"),
            *("source_language", "target_language"),
        )
        assert [expected["baseline"].pop(key) for key in of_imports] == ["", 0, "", 10.0, [], "", "", ""]
    assert stage_settings(experiment, stage) == expected


def test_every_experiment_of_the_project_resolves_and_fills_its_classes(config: dict[str, Any]) -> None:
    experiments = resolve(config)
    assert set(experiments) == set(config["experiments"])
    for experiment in experiments.values():
        for name, kind in CLASSES.items():
            assert section(kind, experiment[name]).model_dump().keys() == experiment[name].keys()


def test_an_experiment_is_the_defaults_with_its_changes_laid_over(config: dict[str, Any]) -> None:
    config["experiments"]["plain"] = None
    changed(config, "training.warmup_updates", 17)
    experiments = resolve(config)
    # 144 heads; 60 % of them are 86.4, 90 % are 129.6.
    chosen = {"budgets": [36, 72, 86, 108, 130], "fine_tuned": {"budgets": [36, 72, 108]}}
    numbers = {"sweep": {"budgets": {"all": [36, 72, 108]}, "selection": chosen}}
    assert experiments["plain"] == merged(config["defaults"], numbers)
    assert experiments["demo"]["training"]["warmup_updates"] == 17
    assert experiments["demo"]["training"]["adam_beta2"] == config["defaults"]["training"]["adam_beta2"]


def test_lists_are_replaced_whole_and_nothing_given_is_changed() -> None:
    base = {"a": {"list": [1, 2, 3], "kept": 4}, "b": 5, "c": {"d": 6}}
    changes = {"a": {"list": [9]}, "c": 7}
    before = copy.deepcopy((base, changes))
    result = merged(base, changes)
    assert result == {"a": {"list": [9], "kept": 4}, "b": 5, "c": 7}
    result["a"]["list"].append(10)
    assert (base, changes) == before


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("training.warmup_update", 5, r"experiments\.demo\.training\.warmup_update is not a setting.*warmup_updates\?"),
        ("trainin", {}, r"experiments\.demo\.trainin is not a setting.*training\?"),
        ("gates.hard_concrete.hihg", 2, r"gates\.hard_concrete\.hihg is not a setting.*high\?"),
        ("model.layers", "six", r"experiments\.demo\.model\.layers is 'six'.*integer"),
        ("training.learning_rate", "1e-3", r"learning_rate is '1e-3'.*write 0\.001"),
        ("model.layers", 0, r"model\.layers.*0"),
        ("model.dropout", 1.0, r"model\.dropout.*1"),
        ("training.precision", "fp16", r"training\.precision.*fp16"),
        ("gates.hard_concrete.low", 0.1, r"hard_concrete\.low"),
        ("model.pre_norm", 1, r"model\.pre_norm is 1.*boolean"),
        ("model.heads", 5, r"model\.width 64 does not divide into 5 heads"),
        ("model", {"width": 9, "heads": 3}, r"model\.width 9 is odd"),
        ("baseline.keep_at", [7, 9999], r"baseline\.keep_at has 9999, but the training ends before"),
        ("baseline.keep_at", [0], r"baseline\.keep_at\.0"),
        ("baseline.fine_tuning_updates", 5, r"baseline\.fine_tuning_updates needs baseline\.pretrained: name a model"),
        ("baseline.decoder", "self_attention", r"baseline\.decoder needs baseline\.pretrained: name a model there"),
        (
            "baseline",
            {"pretrained": "there", "decoder": "self_attention"},
            r"baseline\.decoder makes new weights.*: say under fine_tuning_updates for how long",
        ),
        ("baseline.decoder", "lstm", r"baseline\.decoder is 'lstm'.*self_attention"),
        ("baseline.labels", ["a", "b"], r"baseline\.labels needs baseline\.pretrained: name a model there, or take it"),
        ("baseline.target_language", "de", r"baseline\.target_language needs baseline\.pretrained: name a model there"),
        ("baseline.prefix", ">>ru<<", r"baseline\.prefix needs baseline\.pretrained: name a model there, or take it"),
        (
            "baseline",
            {"pretrained": "there", "keep_at": [3]},
            r"keep_at needs a training, and a .* has none here: empty it, or say .* under fine_tuning_updates\.",
        ),
        (
            "baseline",
            {"pretrained": "there", "fine_tuning_updates": 2, "keep_at": [3]},
            r"baseline\.keep_at has 3, but the training ends before",
        ),
        ("corpus", "demos", r"experiments\.demo\.corpus is 'demos'.*demo\?"),
        ("sweep.lambdas.al", [1], r"sweep\.lambdas\.al is not a setting.*all\?"),
        ("sweep.budgets.enc-self", [1], r"sweep\.budgets\.enc-self is not a setting.*enc_self\?"),
        ("sweep.selection.budgets", [9, 37], r"budgets has 37.*36 heads"),
        ("sweep.selection.fine_tuned.budgets", [37], r"selection\.fine_tuned\.budgets has 37.*36 heads"),
        ("sweep.selection.budgets", [9, 8], r"selection\.budgets has 8, but .*at_least makes optimal keep 9"),
        ("sweep.budgets.enc_self", [12, 13], r"sweep\.budgets\.enc_self has 13, .*the 12 heads of enc_self"),
        ("sweep.budgets.all", [37], r"sweep\.budgets\.all has 37, .*the 36 heads of enc_self and dec_self and dec_enc"),
        ("sweep.budgets.all", ["2-4-13"], r"sweep\.budgets\.all has 2-4-13, .*13 of the 12 heads of dec_enc"),
        ("sweep.budgets.enc_self", ["2-4-6"], r"budgets\.enc_self has 2-4-6, but enc_self has 1 kind.*one number"),
        ("sweep.budgets.all", ["9-9"], r"sweep\.budgets\.all\.0: '9-9' is not a number of heads such as 12, a [^(]*$"),
        (
            "sweep.budgets.all",
            ["0%"],
            r"budgets\.all\.0: '0%' is not .*, a share of them such as 25%, or three numbers",
        ),
        (
            "sweep.budgets.all",
            [0.25],
            r"budgets\.all\.0: 0\.25 is not .*, a share of them such as 25%, or three numbers",
        ),
        ("sweep.budgets.all", ["25 %"], r"budgets\.all\.0: '25 %' is not a number of heads"),
        (
            "sweep.selection.budgets",
            ["101%"],
            r"'101%' is not a number of heads such as 12, or a share of .* as 25%\.$",
        ),
        (
            "sweep.selection.budgets",
            ["0.0%"],
            r"selection\.budgets\.0: '0\.0%' is not a number of heads such as 12, or",
        ),
        ("sweep.selection.budgets", ["-5%"], r"selection\.budgets\.0: '-5%' is not a number of heads such as 12, or"),
        ("sweep.selection.budgets", [0], r"selection\.budgets\.0: 0 is not a number of heads such as 12, or a share"),
        ("sweep.selection.budgets", ["25%", 9, "25%"], r"selection\.budgets names '25%' twice: take one out"),
        ("sweep.budgets.all", [True], r"sweep\.budgets\.all\.0: True is not a number of heads"),
        ("selection.at_least", {"dec_enc": 99}, r"selection\.at_least\.dec_enc is 99, but a layer has 4 heads"),
        (
            "selection.at_least",
            {"dec_enc.7": 1},
            r"at_least names dec_enc\.7, a layer that the model does not have",
        ),
        ("selection.at_least", {"dec_enc": 4}, r"selection\.budgets has 9, but .*at_least makes optimal keep 18"),
        ("selection.at_least", {"dec_enc.0": 3}, r"selection\.budgets has 9, but .*at_least makes optimal keep 11"),
        ("sweep.selection.fine_tuned.methods", ["dps"], r"fine_tuned\.methods\.0 is 'dps', .* Did you mean dsp\?"),
        ("sweep.seeds", [1, 2**31], r"sweep\.seeds\.1: 2147483648 is greater than the maximum of 2147483647"),
        ("sweep.seeds", 3, r"sweep\.seeds is 3, .*write seeds: \[3\]"),
        ("model.pre_norm", "yes", r"model\.pre_norm is 'yes', but must be of type boolean\.$"),
        ("training.learning_rate", "1.5e3", r"learning_rate is '1\.5e3'.*write 0\.001"),
        ("training.learning_rate", "fast", r"learning_rate is 'fast', but must be of type number\.$"),
        ("corpus", "wmt-en-fr", r"demo\.roles\.trees names stanza, but corpora\.wmt-en-fr has no .*under parser_trees"),
        (
            "corpus",
            "multi30k",
            r"demo\.roles\.trees names stanza, but corpora\.multi30k has no gold trees .*: name own, .* under trees\.$",
        ),
        ("roles.trees", ["parsed"], r"demo\.roles\.trees\.0 is 'parsed', .* Known: gold, own, stanza\.$"),
        ("sweep.selection.methods", ["lpr"], r"methods\.0.*lpr"),
        (
            "selection.at_least.enc",
            1,
            r"selection\.at_least: the key 'enc' is not a kind of attention such as dec_enc, or",
        ),
        ("selection.at_least.dec_enc", -1, r"selection\.at_least\.dec_enc: -1 is less than the minimum of 0"),
        ("sweep.seeds", [], r"sweep\.seeds is empty: name at least one"),
        ("sweep.seeds", [1, 1], r"sweep\.seeds names 1 twice: take one out"),
        ("sweep.seeds", {"1": None}, r"sweep\.seeds is .* must be of type array\.$"),
        ("training.warmup_updates", 3.0, r"training\.warmup_updates is 3\.0, but must be of type integer\.$"),
        ("training.warmup_updates", True, r"training\.warmup_updates is True, but must be of type integer\.$"),
        ("training.label_smoothing", False, r"training\.label_smoothing is False, but must be of type number\.$"),
        ("translate.length_penalty", float("inf"), r"translate\.length_penalty is inf, but must be of type number\.$"),
        ("lrp.stabiliser", float("nan"), r"lrp\.stabiliser is nan, but must be of type number\.$"),
        ("lrp.stabiliser", 0, r"lrp\.stabiliser: 0 is less than or equal to the minimum of 0"),
        ("training", None, r"experiments\.demo\.training has no value: write one or take the key out"),
        ("training.batch_tokens", None, r"experiments\.demo\.training\.batch_tokens has no value"),
        ("training", 5, r"experiments\.demo\.training is 5, but must be of type object"),
        ("curve", {}, r"^experiments\.demo\.curve is now called masking_curve: rename it\.$"),
        ("training.learning_rate_scale", 4, r"learning_rate_scale is now learning_rate, its peak: write the scale div"),
        ("moments", {}, r"^experiments\.demo\.moments is now called checkpoints: rename it\.$"),
        ("sweep.lambdas.all", [-0.1], r"sweep\.lambdas\.all\.0"),
        ("sweep.scratch_scopes", ["decoder"], r"scratch_scopes\.0.*decoder"),
    ],
)
def test_a_wrong_setting_is_named_in_one_sentence(sized: dict[str, Any], path: str, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        resolve(changed(sized, path, value))
    assert "\n" not in str(caught.value)


def test_an_experiment_that_is_like_another_starts_from_its_changes(config: dict[str, Any]) -> None:
    rate = {"warmup_updates": 7}
    config["experiments"] |= {
        "mine": {"like": "news-en-ru", "corpus": "multi30k", "training": rate},
        "longer": {"like": "mine", "scratch": {"updates": 9000}},
    }
    experiments = resolve(config)
    news = experiments["news-en-ru"]
    assert experiments["mine"] == {**news, "corpus": "multi30k", "training": {**news["training"], **rate}}
    longer = {"scratch": {**news["scratch"], "updates": 9000}}
    assert experiments["longer"] == {**experiments["mine"], **longer}
    config["experiments"]["news-en-ru"]["model"] = {"dropout": 0.2}
    assert resolve(config)["longer"]["model"]["dropout"] == 0.2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mine": {"like": "nwes-en-ru"}}, r"^experiments\.mine\.like names 'nwes-en-ru', .* mean news-en-ru\?$"),
        (
            {"mine": {"like": "mine"}},
            r"^experiments\.mine\.like leads back to mine: leave out one like of",
        ),
        ({"one": {"like": "two"}, "two": {"like": "one"}}, r"^experiments\.two\.like leads back to one: leave out"),
        ({"mine": {"like": 3}}, r"^experiments\.mine\.like: 3 is not a name of letters"),
    ],
)
def test_like_that_leads_nowhere_is_one_sentence(config: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    config["experiments"] |= changes
    with pytest.raises(UserError, match=message):
        resolve(config)


def test_a_missing_key_a_run_that_is_no_experiment_and_an_unknown_top_key_are_named(config: dict[str, Any]) -> None:
    cases = []
    for spoil, message in (
        (lambda c: c["defaults"]["model"].pop("heads"), r"^defaults\.model lacks the key heads: add it\.$"),
        (lambda c: c["defaults"].update(curve={}), r"^defaults\.curve is now called masking_curve: rename it\.$"),
        (lambda c: c.update(run=["dmo"]), r"run names 'dmo'.*demo\?"),
        (lambda c: c.update(run="demo"), r"config\.yaml\.run is 'demo', .*write run=\[demo\]"),
        (lambda c: c["experiments"].update(tables={}), r"experiments\.tables would lie in results/tables"),
        (lambda c: c.update(experiment={}), r"config\.yaml\.experiment is not a setting.*experiments\?"),
        (lambda c: c["corpora"]["demo"].update(knid="grammar"), r"corpora\.demo\.knid is not a setting.*kind\?"),
        (lambda c: c["corpora"]["demo"].update(kind="gramar"), r"corpora\.demo\.kind is 'gramar'.*grammar\?"),
        (lambda c: c["corpora"]["demo"].update(kind=["x"]), r"corpora\.demo\.kind is \['x'\].*files, grammar"),
        (lambda c: c["corpora"]["demo"].pop("kind"), r"corpora\.demo lacks the key kind: add it"),
        (
            lambda c: c["corpora"]["demo"].update(knid=c["corpora"]["demo"].pop("kind")),
            r"corpora\.demo\.knid is not a setting.*kind\?",
        ),
        (
            lambda c: c["corpora"]["demo"].update(trees="x"),
            r"corpora\.demo\.trees is not a setting of this kind of corpus",
        ),
        (lambda c: c["corpora"]["demo"]["pairs"].pop("dev"), r"corpora\.demo\.pairs lacks the key dev: add it"),
        (lambda c: c["corpora"]["demo"].update(pairs=7), r"corpora\.demo\.pairs is 7, but must be of type object"),
        # In a settings model that occurs twice, in both kinds of corpora, and in one that occurs more often.
        (
            lambda c: c["corpora"]["multi30k"]["cleaning"].update(min_overlap=None),
            r"corpora\.multi30k\.cleaning\.min_overlap has no value",
        ),
        (
            lambda c: c["corpora"]["wmt-en-ru"].update(trees={"path": "x", "member": None}),
            r"corpora\.wmt-en-ru\.trees\.member has no value",
        ),
        (lambda c: c["corpora"].update(mine=7), r"corpora\.mine is 7, but must be of type object"),
        (
            lambda c: c["corpora"]["wmt-en-ru"]["train"][2].update(source="x"),
            r"corpora\.wmt-en-ru\.train\.2\.source is not a setting",
        ),
        (lambda c: c["corpora"]["wmt-en-ru"].update(train="x"), r"wmt-en-ru\.train is 'x'.*write train: \[x\]"),
        (lambda c: c.update(run=[]), r"config\.yaml\.run is empty: name at least one"),
        (lambda c: c.pop("run"), r"config\.yaml lacks the key run: add it"),
    ):
        spoilt = copy.deepcopy(config)
        spoil(spoilt)
        cases.append((spoilt, message))
    for spoilt, message in cases:
        with pytest.raises(UserError, match=message):
            resolve(spoilt)


def test_budgets_seeds_and_what_must_be_kept_may_go_to_their_ends(sized: dict[str, Any]) -> None:
    changed(sized, "sweep.budgets", {"enc_self": [0, 12, "12"], "all": [36, "12-12-12"]})
    changed(sized, "sweep.seeds", [0, 2**31 - 1])
    changed(sized, "sweep.selection.budgets", [9, 36])
    changed(sized, "selection.at_least", {"enc_self": 0, "enc_self.2": 4, "dec_self": 0, "dec_enc": 1, "dec_enc.0": 3})
    assert resolve(sized)["demo"]["sweep"]["seeds"] == [0, 2147483647]
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
    assert resolve(changed(sized, f"sweep.budgets.{scope}", given))["demo"]["sweep"]["budgets"][scope] == numbers


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
    selection = resolve(changed(sized, f"sweep.{key}.budgets", given))["demo"]["sweep"]["selection"]
    assert (selection if key == "selection" else selection["fine_tuned"])["budgets"] == numbers


@pytest.mark.parametrize("corpus", ["demo", "inference"])
@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (1, 2), (2, 2), (2, 3), (3, 4), (6, 8), (12, 16)])
def test_an_experiment_of_any_size_says_nothing_of_numbers_of_heads(
    config: dict[str, Any], corpus: str, layers: int, heads: int
) -> None:
    config["experiments"]["mine"] = {"corpus": corpus, "model": {"layers": layers, "heads": heads, "width": 2 * heads}}
    sweep, there = resolve(config)["mine"]["sweep"], layers * heads * (3 if corpus == "demo" else 1)
    of_choices = (sweep["selection"]["budgets"], sweep["selection"]["fine_tuned"]["budgets"])
    for numbers in (*sweep["budgets"].values(), *of_choices):
        assert numbers and all(1 <= number <= there for number in numbers) and numbers == sorted(numbers)
    if heads >= 4:
        assert sweep["budgets"] == {"all": [there // 4, there // 2, there * 3 // 4]}
        assert of_choices[1] == sweep["budgets"]["all"] and {*of_choices[1]} < {*of_choices[0]}


def test_a_lambda_from_scratch_is_one_of_the_sweep_where_any_of_its_scope_is_trained(sized: dict[str, Any]) -> None:
    changed(sized, "sweep.lambdas", {"enc_self": [0.1], "all": [0.01]})
    changed(sized, "sweep.scratch_lambdas", {"enc_self": [0.1], "all": [0.01, 0.5]})
    resolve(changed(sized, "sweep.scratch_scopes", ["enc_self"]))
    asked = (
        r"^experiments\.demo\.sweep\.scratch_lambdas\.all has 0\.5, which is not in sweep\.lambdas\.all: sweep it as"
    )
    with pytest.raises(UserError, match=asked):
        resolve(changed(sized, "sweep.scratch_scopes", ["enc_self", "all"]))


def test_a_parser_is_asked_for_where_it_can_be_trained_or_is_given(config: dict[str, Any]) -> None:
    entry = config["corpora"]["multi30k"]
    learnt = entry.pop("parser_trees")
    with pytest.raises(UserError, match=r"experiments\.multi30k\.roles\.trees names own, but .*has no treebank"):
        resolve(config)
    config["experiments"]["multi30k"]["parser"]["model"] = "data/stanza"
    resolve(config)
    config["experiments"]["multi30k"]["parser"]["model"] = ""
    resolve({**config, "corpora": {**config["corpora"], "multi30k": {**entry, "parser_trees": learnt}}})


@pytest.mark.parametrize("values", [["0.05", 0.3, 0], [5e-2, 0.30], [0.3, 0.05]])
def test_targets_are_lambdas_in_rising_order_with_the_control_first_and_then_budgets(values: list[Any]) -> None:
    budgets = {"all": [12, "4-6-8", "12"]}
    experiment = {"sweep": {"lambdas": {"all": values, "enc_self": []}, "budgets": budgets}}
    assert [*map(str, targets(experiment, "all"))] == ["lam-0", "lam-0.05", "lam-0.3", "keep-12", "keep-4-6-8"]
    assert targets(experiment, "enc_self") == []


def test_a_section_with_a_key_too_many_or_too_few_is_refused() -> None:
    right = {"sentences": 3, "batch_tokens": 40}
    assert section(ConfidenceSettings, right) == ConfidenceSettings(sentences=3, batch_tokens=40)
    with pytest.raises(UserError, match=r"^ConfidenceSettings lacks the key batch_tokens: add it\.$"):
        section(ConfidenceSettings, {"sentences": 3})
    with pytest.raises(UserError, match=r"^ConfidenceSettings\.sentence is not a setting\. Did you mean sentences\?$"):
        section(ConfidenceSettings, {**right, "sentence": 1})


def test_a_section_inside_a_section_is_filled_and_may_lack_nothing_either(config: dict[str, Any]) -> None:
    content = config["defaults"]["gates"]
    assert section(GatesSettings, content).hard_concrete == HardConcrete()
    del content["hard_concrete"]["low"]
    with pytest.raises(UserError, match=r"^GatesSettings\.hard_concrete lacks the key low: add it\.$"):
        section(GatesSettings, content)


def test_a_word_that_went_is_told_with_what_to_write_in_its_place(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(messages.RENAMED, "best", "is the same as optimal: write that")
    changed(config, "sweep.selection.methods", ["lrp", "best"])
    with pytest.raises(
        UserError, match=r"^experiments\.demo\.sweep\.selection\.methods\.1 is 'best', which is the same as"
    ):
        resolve(config)


@pytest.mark.parametrize("value", [True, "x", [1]])
def test_a_lambda_that_is_no_number_is_refused(config: dict[str, Any], value: Any) -> None:
    with pytest.raises(UserError, match=r"sweep\.lambdas\.all\.1"):
        resolve(changed(config, "sweep.lambdas.all", [0.5, value]))


def test_random_choices_stand_for_all_their_draws_at_every_budget() -> None:
    tuned = {"methods": ["gates", "dsp", "random"], "budgets": [4]}
    selection = {"methods": ["lrp", "random"], "budgets": [9, 4], "draws": 2, "fine_tuned": tuned}
    experiment = {"sweep": {"selection": selection}}
    assert [*map(str, choices(experiment, fine_tuned=True))] == ["keep-4", "dsp-4", "random1-4", "random2-4"]
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
    changed(config, "sweep.selection.methods", list(MEASURED_IN))
    changed(config, "sweep.selection.fine_tuned.methods", ["gates", "dsp", *MEASURED_IN])
    for key in ("methods", "fine_tuned.methods"):
        given = changed(copy.deepcopy(config), f"sweep.selection.{key}", ["confidence"])
        with pytest.raises(UserError, match=r"names the method causal, but causal\.updates is 0: set it"):
            resolve(given)
    changed(config, "causal.updates", 1)
    assert resolve(config)["demo"]["sweep"]["selection"]["methods"] == list(MEASURED_IN)
    with pytest.raises(UserError, match=r"selection\.methods\.0 is 'gates'"):
        resolve(changed(config, "sweep.selection.methods", ["gates"]))


@pytest.mark.parametrize("key", ["sweep.selection.methods", "sweep.selection.fine_tuned.methods"])
def test_the_method_that_was_always_another_one_says_which(config: dict[str, Any], key: str) -> None:
    sentence = rf"experiments\.demo\.{key}\.1 is 'optimal_parameters', which is the same as optimal: write that\.$"
    with pytest.raises(UserError, match=sentence):
        resolve(changed(config, key, ["lrp", "optimal_parameters"]))
    for word, end in (("lpr", r"Did you mean lrp\?$"), (3, "")):
        with pytest.raises(UserError, match=rf"{key}\.0 is {word!r}, .*{end}"):
            resolve(changed(config, key, [word]))

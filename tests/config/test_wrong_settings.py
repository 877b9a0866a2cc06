"""Wrong settings: one sentence that names the key and the nearest one that exists."""

import re
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from plans import changed
from test_written import EDITOR

from heads.base.files import UserError
from heads.config.analyses import ConfidenceSettings
from heads.config.checks import FOLDERS
from heads.config.settings import resolve, section
from heads.config.trainings import GatesSettings, HardConcrete
from test_house import MODULES, SNAKEFILES

MARKED: list[tuple[str, Any, str]] = [
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
    ("baseline.checkpoint_updates", [0], r"baseline\.checkpoint_updates\.0"),
    ("baseline.decoder", "lstm", r"baseline\.decoder is 'lstm'.*self_attention"),
    ("sweep.lambdas.al", [1], r"sweep\.lambdas\.al is not a setting.*all\?"),
    ("sweep.budgets.enc-self", [1], r"sweep\.budgets\.enc-self is not a setting.*enc_self\?"),
    ("sweep.budgets.all", ["9-"], r"sweep\.budgets\.all\.0: '9-' is not a number of heads such as 12, a [^(]*$"),
    ("sweep.budgets.all", ["0%"], r"all\.0: '0%' is not .*, a share of them such as 25%, or several numbers"),
    ("sweep.budgets.all", [0.25], r"budgets\.all\.0: 0\.25 is not a number of heads such as 12"),
    ("sweep.budgets.all", ["25 %"], r"budgets\.all\.0: '25 %' is not a number of heads"),
    ("sweep.selection.budgets", ["101%"], r"'101%' is not a number of heads .*, or a share of .* as 25%\.$"),
    ("sweep.selection.budgets", ["0.0%"], r"budgets\.0: '0\.0%' is not a number of heads such as 12"),
    ("sweep.selection.budgets", ["-5%"], r"selection\.budgets\.0: '-5%' is not a number of heads such as 12, or"),
    ("sweep.selection.budgets", [0], r"selection\.budgets\.0: 0 is not a number of heads such as 12, or a share"),
    ("sweep.selection.budgets", ["25%", 9, "25%"], r"selection\.budgets names '25%' twice: take one out"),
    ("sweep.budgets.all", [True], r"sweep\.budgets\.all\.0: True is not a number of heads"),
    ("sweep.selection.fine_tuned.methods", ["dps"], r"fine_tuned\.methods\.0 is 'dps', .* Did you mean dsp\?"),
    ("sweep.seeds", [1, 2**31], r"sweep\.seeds\.1 is 2147483648, but should be less than or equal to 2147483647"),
    ("sweep.seeds", 3, r"sweep\.seeds is 3, .*write seeds: \[3\]"),
    ("model.pre_norm", "yes", r"model\.pre_norm is 'yes', but must be of type boolean\.$"),
    ("training.learning_rate", "1.5e3", r"learning_rate is '1\.5e3'.*write 0\.001"),
    ("training.learning_rate", "fast", r"learning_rate is 'fast', but must be of type number\.$"),
    ("roles.trees", ["parsed"], r"demo\.roles\.trees\.0 is 'parsed', .* Known: gold, own, stanza\.$"),
    ("selection.at_least.enc", 1, r"at_least: the key 'enc' is not a kind of attention such as dec_enc, or"),
    ("selection.at_least.dec_enc", -1, r"selection\.at_least\.dec_enc is -1, but should be greater than or equal to 0"),
    ("sweep.seeds", [], r"sweep\.seeds is empty: name at least one"),
    ("sweep.seeds", [1, 1], r"sweep\.seeds names 1 twice: take one out"),
    ("sweep.seeds", {"1": None}, r"sweep\.seeds is .* must be of type array\.$"),
    ("training.warmup_updates", True, r"training\.warmup_updates is True, but must be of type integer\.$"),
    ("training.label_smoothing", False, r"training\.label_smoothing is False, but must be of type number\.$"),
    ("lrp.stabiliser", 0, r"lrp\.stabiliser is 0, but should be greater than 0\.$"),
    ("training", None, r"experiments\.demo\.training has no value: write one or take the key out"),
    ("training.batch_tokens", None, r"experiments\.demo\.training\.batch_tokens has no value"),
    ("training", 5, r"experiments\.demo\.training is 5, but must be of type object"),
    ("curve", {}, r"^experiments\.demo\.curve is now called masking_curve: rename it\.$"),
    ("moments", {}, r"^experiments\.demo\.moments is now called checkpoints: rename it\.$"),
    ("sweep.lambdas.all", [-0.1], r"sweep\.lambdas\.all\.0"),
    ("sweep.scratch_scopes", ["decoder"], r"scratch_scopes\.0.*decoder"),
    ("sweep.selection.methods", ["lpr"], r"sweep\.selection\.methods\.0 is 'lpr', .* Did you mean lrp\?$"),
    ("sweep.selection.methods", [3], r"sweep\.selection\.methods\.0 is 3, "),
    ("sweep.selection.methods", ["optimal_parameters"], r"methods\.0 is .* is the same as optimal: write that\.$"),
    ("sweep.selection.fine_tuned.methods", ["optimal_parameters"], r"methods\.0 is .* as optimal: write that\.$"),
    ("sweep.seeds", ["2"], r"sweep\.seeds\.0 is '2', .*remove the quotes; inside braces of --config all is text"),
    ("sweep.lambdas.all", [0.5, True], r"sweep\.lambdas\.all\.1 is True"),
    ("sweep.lambdas.all", [0.5, "x"], r"sweep\.lambdas\.all\.1 is 'x'"),
    ("sweep.lambdas.all", [[1]], r"sweep\.lambdas\.all\.0 is \[1\]"),
    ("sweep.budgets.all", ["09"], r"sweep\.budgets\.all\.0: '09' is not a number of heads"),
    ("sweep.budgets.all", ["4-6-8-2"], r"sweep\.budgets\.all\.0: '4-6-8-2' is not a number of heads"),
    ("sweep.selection.budgets", ["100.5%"], r"selection\.budgets\.0: '100\.5%' is not a number of heads"),
    ("sweep.selection.fine_tuned.budgets", ["0.00%"], r"fine_tuned\.budgets\.0: '0\.00%' is not a number of heads"),
    ("sweep.trained_on_scopes", ["enc_self"], r"trained_on_scopes\.0 is 'enc_self', .* Known: all\.$"),
    ("lrp.rules", ["plain", "z"], r"lrp\.rules\.1 is 'z', which is not a known value\."),
    ("bpe.train_sentences", 100, r"bpe\.train_sentences is 100, but should be greater than or equal to 101"),
    ("speed.repeats", 1, r"speed\.repeats is 1, but should be greater than or equal to 2"),
]
"""Values that are wrong by themselves, so that editors mark them too."""
UNMARKED: list[tuple[str, Any, str]] = [
    ("model.heads", 5, r"model\.width 64 does not divide into 5 heads"),
    ("model", {"width": 9, "heads": 3}, r"model\.width 9 is odd"),
    ("baseline.checkpoint_updates", [7, 9999], r"baseline\.checkpoint_updates has 9999, but the training ends before"),
    ("baseline.fine_tuning_updates", 5, r"baseline\.fine_tuning_updates needs baseline\.pretrained: name a model"),
    ("baseline.decoder", "self_attention", r"baseline\.decoder needs baseline\.pretrained: name a model there"),
    (
        "baseline",
        {"pretrained": "there", "decoder": "self_attention"},
        r"baseline\.decoder makes new weights.*: say under fine_tuning_updates for how long",
    ),
    ("baseline.labels", ["a", "b"], r"baseline\.labels needs baseline\.pretrained: name a model there, or take it"),
    ("baseline.target_language", "de", r"baseline\.target_language needs baseline\.pretrained: name a model there"),
    ("baseline.prefix", ">>ru<<", r"baseline\.prefix needs baseline\.pretrained: name a model there, or take it"),
    (
        "baseline",
        {"pretrained": "there", "checkpoint_updates": [3]},
        r"checkpoint_updates needs a training, and a .* has none here: empty it, or say .* under fine_tuning_updates\.",
    ),
    (
        "baseline",
        {"pretrained": "there", "fine_tuning_updates": 2, "checkpoint_updates": [3]},
        r"baseline\.checkpoint_updates has 3, but the training ends before",
    ),
    ("corpus", "demos", r"experiments\.demo\.corpus is 'demos'.*demo\?"),
    ("sweep.selection.budgets", [9, 37], r"budgets has 37.*36 heads"),
    ("sweep.selection.fine_tuned.budgets", [37], r"selection\.fine_tuned\.budgets has 37.*36 heads"),
    ("sweep.selection.budgets", [9, 8], r"selection\.budgets has 8, but .*at_least makes optimal keep 9"),
    ("sweep.budgets.enc_self", [12, 13], r"sweep\.budgets\.enc_self has 13, .*the 12 heads of enc_self"),
    ("sweep.budgets.all", [37], r"sweep\.budgets\.all has 37, .*the 36 heads of enc_self and dec_self and dec_enc"),
    ("sweep.budgets.all", ["2-4-13"], r"sweep\.budgets\.all has 2-4-13, .*13 of the 12 heads of dec_enc"),
    ("sweep.budgets.enc_self", ["2-4-6"], r"budgets\.enc_self has 2-4-6, which does not fit.*: give one number"),
    ("sweep.budgets.feedforward", ["25%"], r"feedforward has 25%, and shares are of heads: give a number of hidden"),
    ("selection.at_least", {"dec_enc": 99}, r"selection\.at_least\.dec_enc is 99, but a layer has 4 heads"),
    ("selection.at_least", {"dec_enc.7": 1}, r"at_least names dec_enc\.7, a layer that the model does not"),
    ("selection.at_least", {"dec_enc": 4}, r"selection\.budgets has 9, but .*at_least makes optimal keep 18"),
    ("selection.at_least", {"dec_enc.0": 3}, r"selection\.budgets has 9, but .*at_least makes optimal keep 11"),
    ("training.learning_rate_scale", 4, r"demo\.training has both learning_rate 0\.00866 and .*_scale 4: set the"),
    ("training.warmup_updates", 3.0, r"training\.warmup_updates is 3\.0, but must be of type integer\.$"),
    ("translate.length_penalty", float("inf"), r"translate\.length_penalty is inf, but must be of type number\.$"),
    ("lrp.stabiliser", float("nan"), r"lrp\.stabiliser is nan, but must be of type number\.$"),
]
"""Values that do not go with others, or that a JSON schema cannot tell from right ones."""


@pytest.mark.parametrize(
    ("path", "value", "message", "marked"),
    [*((*case, True) for case in MARKED), *((*case, False) for case in UNMARKED)],
)
def test_a_wrong_setting_is_named_in_one_sentence_and_marked_by_editors_where_they_can(
    sized: dict[str, Any], path: str, value: Any, message: str, *, marked: bool
) -> None:
    changed(sized, path, value)
    with pytest.raises(UserError, match=message) as caught:
        resolve(sized)
    assert "\n" not in str(caught.value)
    assert any(EDITOR.iter_errors(sized)) is marked


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


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
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
        (lambda c: c["corpora"]["multi30k"].update(hold_out={"dev": 5, "test": 5}), r"has both hold_out and dev"),
    ],
)
def test_a_missing_key_a_run_that_is_no_experiment_and_an_unknown_top_key_are_named(
    config: dict[str, Any], spoil: Callable[[dict[str, Any]], object], message: str
) -> None:
    spoil(config)
    with pytest.raises(UserError, match=message):
        resolve(config)


def test_a_lambda_from_scratch_is_one_of_the_sweep_where_any_of_its_scope_is_trained(sized: dict[str, Any]) -> None:
    changed(sized, "sweep.lambdas", {"enc_self": [0.1], "all": [0.01]})
    changed(sized, "sweep.scratch_lambdas", {"enc_self": [0.1], "all": [0.01, 0.5]})
    resolve(changed(sized, "sweep.scratch_scopes", ["enc_self"]))
    asked = (
        r"^experiments\.demo\.sweep\.scratch_lambdas\.all has 0\.5, which is not in sweep\.lambdas\.all: sweep it as"
    )
    with pytest.raises(UserError, match=asked):
        resolve(changed(sized, "sweep.scratch_scopes", ["enc_self", "all"]))


def besides_experiments() -> set[str]:
    """The names in results/ that rules and commands write, apart from those of experiments."""
    rules = [path.read_text(encoding="utf-8") for path in SNAKEFILES]
    commands = [path.read_text(encoding="utf-8") for path in MODULES.values()]
    written = (re.findall(r"results/([\w.-]+)", text) for text in rules)
    return {*chain(*written, *(re.findall(r'RESULTS / "([\w.-]+)', text) for text in commands))}


def test_no_experiment_has_a_name_that_results_have_another_use_for(config: dict[str, Any]) -> None:
    assert besides_experiments() == {*FOLDERS} >= {"models", "distilled", "log", "bench", "corpora", "report.html"}
    for name in FOLDERS:
        wrong = {**config, "experiments": {**config["experiments"], name: {"corpus": "demo"}}}
        with pytest.raises(
            UserError, match=rf"^experiments\.{name} would lie in results/{name}, which has another use:"
        ):
            resolve(wrong)


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

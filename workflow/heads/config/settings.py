"""Settings: an experiment is the defaults plus its own changes, checked, then split by stage.

The values that a run uses all stand in config.yaml; those of the models are written there. Imported by the Snakefile,
so kept light.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

from heads.base.files import UserError, settings_given
from heads.base.names import CHOICE_SCOPE, CLASSIFICATION, KINDS_OF, TASK
from heads.config.checks import check_together, sized_by_settings
from heads.config.corpus_entries import check_corpus, task_of
from heads.config.experiment import Config, Experiment
from heads.config.fields import Closed
from heads.config.messages import nearest, validated
from heads.config.trainings import HardConcrete

STAGE_SECTIONS: dict[str, tuple[str, ...]] = {
    "bpe": ("bpe",),
    "baseline": ("model", "training", "baseline"),
    "imported_bpe": ("baseline",),
    "imported": ("training", "baseline"),
    "gates": ("training", "gates"),
    "penalty_gates": ("training", "gates", "scratch"),
    "selected": ("training", "selected"),
    "selection": ("selection",),
    "masked": ("translate", "selection"),
    "compared": ("selection",),
    "scratch": ("training", "scratch"),
    "score": ("translate",),
    "classified": ("translate",),
    "confidence": ("confidence",),
    "lrp": ("lrp",),
    "roles": ("roles",),
    "dynamics": ("roles", "confidence"),
    "alignment_heads": ("alignment_heads",),
    "maps": ("maps", "translate"),
    "parser": ("parser",),
    "speed": ("speed",),
    "importance": ("importance", "training"),
    "causal": ("causal",),
    "ablation": ("ablation",),
    "masking_curve": ("masking_curve",),
    "checkpoints": ("checkpoints", "importance", "training"),
}
"""Which sections of an experiment each stage is given; a change elsewhere can not rerun it."""
OF_IMPORTS = (
    *("pretrained", "fine_tuning_updates", "decoder", "new_weights_rate", "labels", "prefix"),
    *("source_language", "target_language"),
)
"""Keys of the section `baseline` that the stage of that name is not given: it is not run where they say anything."""
LIKE = "like"
"""The key of an experiment that names the one whose changes it starts from."""


Section = TypeVar("Section", bound=Closed)


def section(kind: type[Section], content: Mapping[str, Any]) -> Section:
    """Fill a settings class from a mapping with exactly its keys, whose values `resolve` has checked."""
    expected = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if set(content) != expected:
        raise UserError(f"settings of {kind.__name__} need exactly the keys {', '.join(sorted(expected))}.")
    kinds = get_type_hints(kind)
    values = {
        key: section(kinds[key], value)
        if isinstance(kinds[key], type) and issubclass(kinds[key], Closed)
        else tuple(value)
        if isinstance(value, list)
        else value
        for key, value in content.items()
    }
    return kind(**values)


def gates_given(word: str) -> dict[str, HardConcrete]:
    """The distribution of gates by experiment, from JSON or a YAML file of `{EXPERIMENT: {temperature: ...}}`."""
    return {name: section(HardConcrete, content) for name, content in settings_given(word).items()}


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes` laid over it, mapping by mapping; lists and values are replaced whole."""
    result = dict(copy.deepcopy(base))
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def resolve(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """All experiments of a configuration, resolved and checked; shares are numbers of heads but of imported models.

    Raises UserError with one sentence that names the key and the nearest one that exists.
    """
    for corpus in validated(Config, config).corpora.values():
        check_corpus(corpus)
    validated(Experiment, config["defaults"], "defaults", whole=True)
    experiments = {}
    # Those that are like none come first, so that a fault is named where it is written.
    for name in sorted(config["experiments"], key=lambda name: LIKE in (config["experiments"][name] or {})):
        changes = changes_of(name, config["experiments"])
        experiment = merged(config["defaults"], changes)
        entry = config["corpora"].get(experiment["corpus"])
        if entry is not None and task_of(entry) == CLASSIFICATION:
            experiment = classifying(name, experiment, changes)
        check_together(name, experiment, config)
        # Only its folder says how many heads an imported model has: `heads.config.plan` asks when it is needed.
        trained_here = not experiment["baseline"]["pretrained"]
        experiments[name] = sized_by_settings(f"experiments.{name}", experiment) if trained_here else experiment
    for name in config["run"]:
        if name not in experiments:
            raise UserError(f"run names {name!r}, which is not under experiments.{nearest(name, experiments)}")
    return experiments


def changes_of(name: str, experiments: Mapping[str, Any], below: tuple[str, ...] = ()) -> dict[str, Any]:
    """What an experiment changes of the defaults: its own settings, laid over those of the experiment it is `like`.

    below: the experiments that led here. Raises UserError where `like` names none, or leads back to one of them.
    """
    own = dict(experiments[name] or {})
    other = own.pop(LIKE, None)
    if other is None:
        return own
    if other not in experiments:
        raise UserError(
            f"experiments.{name}.{LIKE} names {other!r}, which is not under experiments.{nearest(other, experiments)}"
        )
    if other in (name, *below):
        raise UserError(f"experiments.{name}.{LIKE} leads back to {other}: leave out one {LIKE} of the circle.")
    return merged(changes_of(other, experiments, (name, *below)), own)


def classifying(name: str, experiment: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """An experiment that classifies, without what the defaults say of a decoder and of the encoder apart.

    Raises UserError where its own changes say anything of the encoder apart, which is all there is.
    """
    sweep, own = experiment["sweep"], changes.get("sweep", {})
    for key in ("lambdas", "budgets"):
        if own.get(key, {}).get("enc_self"):
            raise UserError(
                f"experiments.{name}.sweep.{key} names enc_self, but a model that classifies has no other heads: "
                "say it under all."
            )
    swept = {key: {CHOICE_SCOPE: sweep[key].get(CHOICE_SCOPE, [])} for key in ("lambdas", "budgets")}
    at_least = experiment["selection"]["at_least"]
    kept = {key: number for key, number in at_least.items() if key.partition(".")[0] in KINDS_OF[CLASSIFICATION]}
    selection = {**experiment["selection"], "at_least": kept}
    return {**experiment, "sweep": {**sweep, **swept}, "selection": selection, TASK: CLASSIFICATION}


def stage_settings(experiment: Mapping[str, Any], stage: str) -> dict[str, Any]:
    """The part of a resolved experiment that one stage is given."""
    sections = {name: experiment[name] for name in STAGE_SECTIONS[stage]}
    if stage == "baseline":
        sections[stage] = {key: value for key, value in sections[stage].items() if key not in OF_IMPORTS}
    if stage in ("bpe", "imported_bpe", "imported") and TASK in experiment:
        sections[TASK] = experiment[TASK]
    return sections

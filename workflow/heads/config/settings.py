"""Settings: an experiment is the defaults plus its own changes, checked, then split by stage.

The values that a run uses all stand in config.yaml; those of the models are written there. Imported by the Snakefile,
so kept light.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

from heads.base.files import UserError
from heads.base.methods import BY_GATES
from heads.base.names import number_text
from heads.config.checks import check_together
from heads.config.corpora import check_corpus
from heads.config.experiment import Config, Experiment
from heads.config.fields import Closed
from heads.config.messages import nearest, validated

STAGE_SECTIONS: dict[str, tuple[str, ...]] = {
    "bpe": ("bpe",),
    "baseline": ("model", "training", "baseline"),
    "gates": ("training", "gates"),
    "penalty_gates": ("training", "gates", "scratch"),
    "selected": ("training", "selected"),
    "selection": ("selection",),
    "masked": ("translate", "selection"),
    "compared": ("selection",),
    "scratch": ("training", "scratch"),
    "score": ("translate",),
    "confidence": ("confidence",),
    "lrp": ("lrp",),
    "roles": ("roles",),
    "maps": ("maps",),
    "parser": ("parser",),
    "speed": ("speed",),
    "importance": ("importance", "training"),
    "ablation": ("ablation",),
    "masking_curve": ("masking_curve",),
    "checkpoints": ("checkpoints", "importance", "training"),
}
"""Which sections of an experiment each stage is given; a change elsewhere can not rerun it."""


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
    """All experiments of a configuration, resolved and checked.

    Raises UserError with one sentence that names the key and the nearest one that exists.
    """
    for corpus in validated(Config, config).corpora.values():
        check_corpus(corpus)
    validated(Experiment, config["defaults"], "defaults", whole=True)
    experiments = {}
    for name, changes in config["experiments"].items():
        experiment = merged(config["defaults"], changes or {})
        check_together(name, experiment, config)
        experiments[name] = experiment
    for name in config["run"]:
        if name not in experiments:
            raise UserError(f"run names {name!r}, which is not under experiments.{nearest(name, experiments)}")
    return experiments


def stage_settings(experiment: Mapping[str, Any], stage: str) -> dict[str, Any]:
    """The part of a resolved experiment that one stage is given."""
    return {name: experiment[name] for name in STAGE_SECTIONS[stage]}


def targets(experiment: Mapping[str, Any], scope: str) -> list[str]:
    """The targets of a scope as they stand in paths: lambdas in rising order, the control 0 first, then budgets."""
    sweep = experiment["sweep"]
    lambdas = {number_text(value) for value in sweep["lambdas"].get(scope, [])}
    budgets = dict.fromkeys(str(budget) for budget in sweep["budgets"].get(scope, []))
    control = {"0"} if lambdas or budgets else set()
    return [*(f"lam-{value}" for value in sorted(lambdas | control, key=float)), *(f"keep-{b}" for b in budgets)]


def choices(experiment: Mapping[str, Any], *, fine_tuned: bool) -> list[str]:
    """The choices of heads to compare as they stand in paths, such as `random2-12`; all, or those to be trained on.

    Those of gates stand under their targets, `keep-12` or `dsp-12`.
    """
    whole = experiment["sweep"]["selection"]
    sweep = whole["fine_tuned"] if fine_tuned else whole
    draws = [f"random{number}" for number in range(1, whole["draws"] + 1)]
    names = [name for method in sweep["methods"] for name in (draws if method == "random" else [method])]
    return [f"{BY_GATES.get(name, name)}-{budget}" for name in names for budget in sweep["budgets"]]

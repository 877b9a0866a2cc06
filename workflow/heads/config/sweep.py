"""What an experiment sweeps: targets of gates, and choices of heads to compare. Imported by the Snakefile, so light."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heads.base.criteria import RANDOM
from heads.base.targets import CONTROL, Target


def targets(experiment: Mapping[str, Any], scope: str) -> list[Target]:
    """The targets of a scope: lambdas in rising order, the control first, then budgets in the order of the settings."""
    sweep = experiment["sweep"]
    lambdas = {Target.of_penalty(value) for value in sweep["lambdas"].get(scope, [])}
    budgets = dict.fromkeys(Target.of_choice("gates", budget) for budget in sweep["budgets"].get(scope, []))
    control = {CONTROL} if lambdas or budgets else set()
    return [*sorted(lambdas | control), *budgets]


def choices(experiment: Mapping[str, Any], *, fine_tuned: bool) -> list[Target]:
    """The choices of heads to compare, such as `random2-12`; all, or those to be trained on, also by gates."""
    whole = experiment["sweep"]["selection"]
    sweep = whole["fine_tuned"] if fine_tuned else whole
    draws = [f"{RANDOM}{number}" for number in range(1, whole["draws"] + 1)]
    names = [name for method in sweep["methods"] for name in (draws if method == RANDOM else [method])]
    return [Target.of_choice(name, budget) for name in names for budget in sweep["budgets"]]

"""What an experiment sweeps: targets of gates, and choices of heads to compare. Imported by the Snakefile, so light."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heads.base.methods import BY_GATES
from heads.base.names import number_text


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

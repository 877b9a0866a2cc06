"""What an experiment sweeps: targets of gates and choices of heads. Imported by the Snakefile, so light."""

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from heads.base.methods import DRAWN
from heads.base.names import SCOPES
from heads.base.targets import CONTROL, Target

Budget = int | str
"""How many heads to keep, as written in settings: a number, perhaps as text, a share such as 25%, or 4-6-8."""


def targets(experiment: Mapping[str, Any], scope: str) -> list[Target]:
    """The targets of a scope: the control, lambdas in rising order, then budgets in the order of the settings."""
    sweep = experiment["sweep"]
    lambdas = {Target.of_penalty(value) for value in sweep["lambdas"].get(scope, [])}
    budgets = dict.fromkeys(Target.of_choice("gates", budget) for budget in sweep["budgets"].get(scope, []))
    control = {CONTROL} if lambdas or budgets else set()
    return [*sorted(lambdas | control), *budgets]


def choices(experiment: Mapping[str, Any], *, fine_tuned: bool) -> list[Target]:
    """The choices of heads to compare, such as `random2-12`: those scored masked, or those to fine-tune."""
    whole = experiment["sweep"]["selection"]
    sweep = whole["fine_tuned"] if fine_tuned else whole
    draws = {method: [f"{method}{number}" for number in range(1, whole["draws"] + 1)] for method in DRAWN}
    names = [name for method in sweep["methods"] for name in draws.get(method, [method])]
    return [Target.of_choice(name, budget) for name in names for budget in sweep["budgets"]]


def has_shares(experiment: Mapping[str, Any]) -> bool:
    """Whether any number of heads of an experiment is a share, which depends on the size of its model."""
    selection = experiment["sweep"]["selection"]
    lists = [*experiment["sweep"]["budgets"].values(), selection["budgets"], selection["fine_tuned"]["budgets"]]
    return any(is_share(budget) for budgets in lists for budget in budgets)


def in_numbers(experiment: Mapping[str, Any], heads: Mapping[str, int], needed: int) -> dict[str, Any]:
    """An experiment with numbers of heads in place of shares, which are of all heads or of those of a scope.

    heads: their number by kind of attention; a scope with hidden units has no shares. needed: how many heads the
    optimal choice must keep; if it is compared, no share becomes fewer. Shares are rounded, a half up, to at least one
    head; equal ones are listed once.
    """
    sweep, there = experiment["sweep"], sum(heads.values())

    def chosen(part: Mapping[str, Any]) -> dict[str, Any]:
        least = needed if "optimal" in part["methods"] else 1
        return {**part, "budgets": [*dict.fromkeys(int(_number(one, there, least)) for one in part["budgets"])]}

    by_gates = {
        scope: [_number(one, sum(heads.get(kind, 0) for kind in SCOPES[scope])) for one in budgets]
        if scope in SCOPES
        else budgets
        for scope, budgets in sweep["budgets"].items()
    }
    selection = {**chosen(sweep["selection"]), "fine_tuned": chosen(sweep["selection"]["fine_tuned"])}
    return {**experiment, "sweep": {**sweep, "budgets": by_gates, "selection": selection}}


def is_share(budget: Budget) -> bool:
    """Whether a budget is a share of all heads, such as 25%."""
    return isinstance(budget, str) and budget.endswith("%")


def _number(budget: Budget, there: int, least: int = 1) -> Budget:
    """A share as a number of the heads that there are; anything else unchanged."""
    if not is_share(budget):
        return budget
    exact = Decimal(str(budget).removesuffix("%")) * there / 100
    return max(least, int(exact.to_integral_value(ROUND_HALF_UP)))

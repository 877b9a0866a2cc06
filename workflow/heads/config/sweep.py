"""Which runs an experiment has: targets of gates and choices of heads. Imported by the Snakefile, so kept light."""

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal

from heads.base.methods import DRAWN
from heads.base.names import CHOICE_SCOPE, GATED_SCOPES, SCOPES
from heads.base.runs import Run
from heads.base.targets import CONTROL, Target
from heads.config.experiment import ChoiceSettings, Experiment, FineTunedSettings

Budget = int | str
"""How many heads to keep, as written in settings: a number, perhaps as text, a share such as 25%, or 4-6-8."""


def runs(experiment: Experiment) -> list[Run]:
    """All runs of an experiment without shares of heads: baselines, then by kind, scope, target and seed."""
    found: list[tuple[str, str | None, Target | None]] = [("baseline", None, None)]
    for kind in ("gates", "pruned", "scratch", "gates_from_scratch", "pruned_from_scratch"):
        found += [(kind, scope, target) for scope in GATED_SCOPES for target in targets_of(experiment, kind, scope)]
    chosen = [*choices(experiment, fine_tuned=True), *trained_on(experiment)]
    # If anything is fine-tuned, so is the control, which shows what fine-tuning alone does.
    chosen = [CONTROL, *chosen] if chosen else []
    found += [("selected", CHOICE_SCOPE, choice) for choice in chosen]
    return [Run(*what, seed) for what in found for seed in experiment.sweep.seeds]


def targets_of(experiment: Experiment, kind: str, scope: str) -> list[Target]:
    """The targets that are swept in a scope, for one kind of run with gates or of what gates left."""
    swept, found = experiment.sweep, targets(experiment, scope)
    if "scratch" in kind or "penalty" in kind:
        # The paper's comparisons are about lambdas; those with a budget are made only if asked for by path.
        scopes = swept.scratch_scopes if kind == "scratch" else swept.gates_from_scratch_scopes
        found = [target for target in found if target.has_penalty and scope in scopes]
        if kind == "scratch" and scope in swept.scratch_lambdas:
            found = [target for target in found if target in swept.scratch_lambdas[scope]]
        return found
    if scope == CHOICE_SCOPE:
        found += [one for one in choices(experiment, fine_tuned=True) if one.by_gates and one not in found]
    return found


def targets(experiment: Experiment, scope: str) -> list[Target]:
    """The targets of a scope: the control, lambdas in rising order, then budgets in the order of the settings."""
    swept = experiment.sweep
    lambdas = {*swept.lambdas.get(scope, ())}
    budgets = dict.fromkeys(Target.of_choice("gates", budget) for budget in swept.budgets.get(scope, ()))
    control = {CONTROL} if lambdas or budgets else set()
    return [*sorted(lambdas | control), *budgets]


def choices(experiment: Experiment, *, fine_tuned: bool) -> list[Target]:
    """The choices of heads to compare, such as `random2-12`: those scored masked, or those to fine-tune."""
    whole = experiment.sweep.selection
    asked = whole.fine_tuned if fine_tuned else whole
    draws = {method: [f"{method}{number}" for number in range(1, whole.draws + 1)] for method in DRAWN}
    names = [name for method in asked.methods for name in draws.get(method, [method])]
    return [Target.of_choice(name, budget) for name in names for budget in asked.budgets]


def trained_on(experiment: Experiment) -> list[Target]:
    """The lambdas, as targets, to whose remaining heads the baseline is also cut down, then fine-tuned."""
    if CHOICE_SCOPE not in experiment.sweep.trained_on_scopes:
        return []
    return [target for target in targets(experiment, CHOICE_SCOPE) if target.has_penalty]


def has_shares(experiment: Experiment) -> bool:
    """Whether any number of heads of an experiment is a share, which depends on the size of its model."""
    selection = experiment.sweep.selection
    lists = [*experiment.sweep.budgets.values(), selection.budgets, selection.fine_tuned.budgets]
    return any(is_share(budget) for budgets in lists for budget in budgets)


def in_numbers(experiment: Experiment, heads: Mapping[str, int], needed: int) -> Experiment:
    """An experiment with numbers of heads in place of shares, which are of all heads or of those of a scope.

    heads: their number by kind of attention; a scope with hidden units has no shares. needed: how many heads the
    optimal choice must keep; if it is compared, no share becomes fewer. Shares are rounded, a half up, to at least one
    head; equal ones are listed once.
    """
    swept, there = experiment.sweep, sum(heads.values())

    def in_all(part: ChoiceSettings | FineTunedSettings) -> tuple[int, ...]:
        least = needed if "optimal" in part.methods else 1
        return tuple(dict.fromkeys(int(_number(one, there, least)) for one in part.budgets))

    by_gates = {
        scope: tuple(_number(one, sum(heads.get(kind, 0) for kind in SCOPES[scope])) for one in budgets)
        if scope in SCOPES
        else budgets
        for scope, budgets in swept.budgets.items()
    }
    fine_tuned = swept.selection.fine_tuned
    fine_tuned = fine_tuned.model_copy(update={"budgets": in_all(fine_tuned)})
    chosen = swept.selection.model_copy(update={"budgets": in_all(swept.selection), "fine_tuned": fine_tuned})
    return experiment.model_copy(update={"sweep": swept.model_copy(update={"budgets": by_gates, "selection": chosen})})


def is_share(budget: Budget) -> bool:
    """Whether a budget is a share of all heads, such as 25%."""
    return isinstance(budget, str) and budget.endswith("%")


def _number(budget: Budget, there: int, least: int = 1) -> Budget:
    """A share as a number of the heads that there are; anything else unchanged."""
    if not is_share(budget):
        return budget
    exact = Decimal(str(budget).removesuffix("%")) * there / 100
    return max(least, int(exact.to_integral_value(ROUND_HALF_UP)))

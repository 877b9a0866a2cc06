"""The files that attention maps are made of. The rules ask here, so that nothing heavy is imported."""

from __future__ import annotations

from heads.base.names import CLASSIFICATION
from heads.config.plan import Plan


def sentences_shown(plan: Plan, experiment: str) -> str:
    """The trees that decide on roles, else the dev text; examples come from the dev text, whatever trees there are."""
    if plan.task(experiment) == CLASSIFICATION or not plan.has_trees(experiment):
        return f"{plan.corpus_of(experiment)}/dev.source.txt"
    return next(iter(plan.tree_files(experiment).values()))


def labels_shown(plan: Plan, experiment: str) -> list[str]:
    """The labels of the examples; nothing where there are none."""
    return [f"{plan.corpus_of(experiment)}/dev.target.txt"] if plan.task(experiment) == CLASSIFICATION else []


def trees_shown(plan: Plan, experiment: str) -> list[str]:
    """The gold trees of the examples' sentences, one behind the other; nothing where there are none of them."""
    kind = plan.corpora[plan.experiments[experiment]["corpus"]]["kind"]
    return [plan.gold_trees(experiment)] if kind == "grammar_pairs" else []

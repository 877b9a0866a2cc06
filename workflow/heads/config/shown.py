"""The files that attention maps are made from. The rules call this module, so that nothing heavy is imported."""

from __future__ import annotations

from heads.base.names import CLASSIFICATION
from heads.config.plan import Plan


def sentences_shown(plan: Plan, experiment: str) -> str:
    """The file of the sentences shown: the trees that decide roles, else the dev text; always dev for classifiers."""
    if plan.task(experiment) == CLASSIFICATION or not plan.has_trees(experiment):
        return f"{plan.corpus_of(experiment)}/dev.source.txt"
    return next(iter(plan.tree_files(experiment).values()))


def labels_shown(plan: Plan, experiment: str) -> list[str]:
    """The file with the labels of the examples; empty for translation."""
    return [f"{plan.corpus_of(experiment)}/dev.target.txt"] if plan.task(experiment) == CLASSIFICATION else []


def trees_shown(plan: Plan, experiment: str) -> list[str]:
    """The file with the gold trees of the examples' sentences in order; empty if these have no gold trees."""
    kind = plan.corpora[plan.experiments[experiment]["corpus"]]["kind"]
    return [plan.gold_trees(experiment)] if kind == "grammar_pairs" else []

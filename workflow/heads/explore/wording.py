"""Names of runs and measures on the page, and the values of table cells."""

import math
from collections.abc import Mapping
from typing import Any

from heads.base.names import ACCURACY, COSINE, FEEDFORWARDS, METRIC_NAMES, TRANSLATION
from heads.base.runs import Run
from heads.base.targets import Target
from heads.tables.head_measures import GATES
from heads.tables.head_measures import MEASURES as HEAD_MEASURES
from heads.tables.labels import PREFIX, is_shown, reading_label, reading_of

METRICS = {
    **{metric: {"name": name, "unit": ""} for metric, name in METRIC_NAMES.items()},
    ACCURACY: {"name": "accuracy", "unit": "%"},
    COSINE: {"name": "cosine", "unit": "%"},
}
"""Names and units of metrics on the page."""
GROWN = " The decoder’s self-attention is young: trained here to replace recurrent units; the rest is pretrained."
"""The note on a model whose decoder was given self-attention."""
KINDS = {"baseline": "unpruned", "pruned": "pruned", "scratch": "from scratch"}
GIVEN = "given"
"""The name of a model that had lost heads before it was measured, in place of "unpruned"."""
FIRST = (GATES, "ablation.tsv")
"""Files of the measures that the page offers first: what became of the head, and what it costs to do without it."""
MEASURES = {
    **{
        measure.key: (measure.name, measure.what)
        for measure in sorted(HEAD_MEASURES, key=lambda one: (*FIRST, one.file).index(one.file))
        if measure.name
    },
    "aer": (
        "alignment error rate",
        "how far the source words it looks at most differ from a word alignment; 0: they agree",
    ),
}
"""Name and meaning by column of table_measures.tsv or alignment_heads.tsv; relevance has a column per reading."""

HOW = {
    "signed by step": "signed, mean over steps: as in the paper, but dominated by few steps",
    "signed of sums": "signed, from relevance first summed over all steps",
    "absolute": "absolute values, mean over steps",
}
"""Descriptions of `heads.tables.labels.SHARES`."""

OF_LABELS = {
    "on all kinds of attention": "on all heads",
    "heads of all kinds of attention": "heads",
    "per sentence": "per example",
    "the likeliest next subword": "the likeliest label",
    "without the end token": "without start and separator tokens",
}
"""Replacements that turn descriptions for translation models into ones for classifiers."""


def measure_of(column: str) -> dict[str, str] | None:
    """Key, name and meaning of a column; None if the page does not show it."""
    if column in MEASURES:
        name, what = MEASURES[column]
    elif column.startswith(PREFIX) and is_shown(reading := reading_of(column)):
        name = f"relevance, {reading_label(reading).removeprefix('LRP, ')}"
        what = f"share of its layer's relevance for the likeliest next subword, {HOW[reading.partition(', ')[2]]}"
    else:
        return None
    return {"key": column, "name": name, "what": what}


def worded(measure: Mapping[str, str], task: str, score: str) -> dict[str, str]:
    """A measure, described for models of this task and with this score."""
    said = dict(measure)
    for translated, meaning in {"BLEU": score, **(OF_LABELS if task != TRANSLATION else {})}.items():
        said |= {part: said[part].replace(translated, meaning) for part in ("name", "what")}
    return said


def run_in(row: Mapping[str, Any]) -> Run:
    """The run that a row with `heads.tables.reading.RUN_COLUMNS` belongs to."""
    target = Target.of_columns(row["method"], row["lam"], row["keep"])
    return Run(row["kind"], row["scope"] or None, target, int(row["seed"]))


def asked_of(target: Target | None) -> str:
    """A target in readable form: λ 0.01, 12 heads, 2 + 4 + 6 heads."""
    if target is None:
        return ""
    if target.lam is not None:
        return f"λ {target.columns[1]}"
    return f"{' + '.join(map(str, target.budgets))} heads"


def name_of(run: Run, *, whole: bool) -> str:
    """The name of a model on the page. whole: whether it has all the heads that it had at first."""
    if run.kind == "baseline" and not whole:
        return GIVEN
    if run.kind == "pruned" and run.target is not None and run.target.is_control:
        return "control: fine-tuned, nothing pruned"
    return " ".join(word for word in (KINDS.get(run.kind, run.kind), asked_of(run.target)) if word)


def number(value: object) -> float | None:
    """The number in a table cell; None if it is empty."""
    found = math.nan if value is None or value == "" else float(value)  # type: ignore[arg-type]
    return None if math.isnan(found) else found


def units_left(facts: Mapping[str, Any]) -> str:
    """What is left of a model's hidden units in each layer, in words; "" if all are. facts: a row of `model.json`."""
    of = int(facts["feedforward"])
    stacks = {name: facts[stack].split() for stack, name in zip(FEEDFORWARDS, ("encoder", "decoder"), strict=True)}
    if all(units == str(of) for layers in stacks.values() for units in layers):
        return ""
    parts = "; ".join(f"{name} {', '.join(layers)}" for name, layers in stacks.items() if layers)
    return f"hidden units left of {of} in each layer, first to last: {parts}"

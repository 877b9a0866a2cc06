"""How the page names runs and measures, and writes the cells of tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from heads.base.names import ACCURACY, BLEU, COSINE, TRANSLATION
from heads.base.runs import Run
from heads.base.targets import Target
from heads.figures.importance import reading_label
from heads.tables.relevance import PREFIX, is_shown, reading_of

METRICS = {
    BLEU: {"name": "BLEU", "unit": ""},
    ACCURACY: {"name": "accuracy", "unit": "%"},
    COSINE: {"name": "cosine", "unit": "%"},
}
"""How the page calls what models are scored by."""
GROWN = " The decoder’s self-attention is young, trained here in the place of recurrent units; the rest came trained."
"""Of a model that was given self-attention."""
KINDS = {"baseline": "unpruned", "pruned": "pruned", "scratch": "from scratch"}
MEASURES = {
    "gate_last_lambda_all": (
        "penalty survived, all heads pruned",
        "the largest λ at which the head's gate stays open when gates are on all kinds of attention; 0: none",
    ),
    "gate_last_lambda_enc_self": (
        "penalty survived, encoder pruned",
        "the largest λ at which the head's gate stays open when gates are on the encoder alone; 0: none",
    ),
    "gate_fewest_heads_all": (
        "stays among so few, all heads pruned",
        "the fewest heads of all kinds of attention among which pruning leaves it; the number of all: it never does",
    ),
    "gate_fewest_heads_enc_self": (
        "stays among so few, encoder pruned",
        "the fewest encoder heads among which pruning the encoder leaves it; the number of all: it never does",
    ),
    "score_lost": ("BLEU lost when masked alone", "test BLEU of the model less its BLEU without this one head"),
    "confidence": ("confidence", "mean of the largest attention weight, the end sign left out"),
    "importance_example": (
        "importance (Michel et al.)",
        "mean absolute derivative of the loss by the head's gate, by sentence, over the norm of the layer",
    ),
    "importance_token": ("importance by subword", "the same, absolute by subword"),
    "importance_batch": ("importance by batch", "the same, absolute by batch"),
    "importance_signed": ("importance, signed", "the same, nowhere absolute"),
    "causal_gate": (
        "causal gate",
        "how far open its gate stays, nudged either way, with all weights frozen; 1: it helps, 0: it is in the way",
    ),
    "syntactic_gain": ("best gain on a relation", "accuracy above the best fixed offset, for the head's best relation"),
    "positional_accuracy": ("most to one fixed offset", "share of subwords whose largest weight is at one offset"),
    "rare_accuracy": ("looks at rare subwords", "share of sentences whose rarest subword, or two, it looks at most"),
    "aer": (
        "alignment error rate",
        "how far the source words it looks at most differ from a word alignment; 0: not at all",
    ),
}
"""By column of table_measures.tsv or alignment_heads.tsv its name and what it is; relevance has a column a reading."""

HOW = {
    "signed by step": "with its sign, mean over steps: as the paper writes it, and decided by few steps",
    "signed of sums": "with its sign, summed over all steps before it is shared out",
    "absolute": "absolute values, mean over steps",
}
"""What is said of each of `heads.tables.relevance.SHARES`."""

OF_LABELS = {
    "on all kinds of attention": "on all heads",
    "heads of all kinds of attention": "heads",
    "by sentence": "by example",
    "the likeliest next subword": "the likeliest label",
    "the end sign left out": "start and separators left out",
}
"""What is said of a model that classifies in the place of words about one that translates."""


def measure_of(column: str) -> dict[str, str] | None:
    """Key, name and meaning of a column, None for one that says the same as another."""
    if column in MEASURES:
        name, what = MEASURES[column]
    elif column.startswith(PREFIX) and is_shown(reading := reading_of(column)):
        name = f"relevance, {reading_label(reading).removeprefix('LRP, ')}"
        what = f"share of its layer in the relevance of the likeliest next subword, {HOW[reading.partition(', ')[2]]}"
    else:
        return None
    return {"key": column, "name": name, "what": what}


def worded(measure: Mapping[str, str], task: str, score: str) -> dict[str, str]:
    """A measure in the words for models that are trained for this task and scored by this."""
    said = dict(measure)
    for translated, meaning in {"BLEU": score, **(OF_LABELS if task != TRANSLATION else {})}.items():
        said |= {part: said[part].replace(translated, meaning) for part in ("name", "what")}
    return said


def run_in(row: Mapping[str, Any]) -> Run:
    """The run of a row with `heads.tables.reading.RUN_COLUMNS`."""
    target = Target.of_columns(row["method"], row["lam"], row["keep"])
    return Run(row["kind"], row["scope"] or None, target, int(row["seed"]))


def asked_of(target: Target | None) -> str:
    """What a person would call a target: λ 0.01, 12 heads, 2 + 4 + 6 heads."""
    if target is None:
        return ""
    if target.lam is not None:
        return f"λ {target.columns[1]}"
    return f"{' + '.join(map(str, target.budgets))} heads"


def name_of(run: Run) -> str:
    """What a person would call a model."""
    if run.kind == "pruned" and run.target is not None and run.target.is_control:
        return "control: trained on, nothing pruned"
    return " ".join(word for word in (KINDS.get(run.kind, run.kind), asked_of(run.target)) if word)


def number(value: object) -> float | None:
    """A number as it stands in a table; None for an empty cell."""
    found = math.nan if value is None or value == "" else float(value)  # type: ignore[arg-type]
    return None if math.isnan(found) else found

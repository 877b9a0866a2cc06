"""The criteria for choosing heads, and the file that each one reads. Imported by the Snakefile, so kept light."""

from __future__ import annotations

from collections.abc import Iterable

RANDOM = "random"

MEASURED_IN = {
    "example": "importance.tsv",
    "example_layer": "importance.tsv",
    "token": "importance.tsv",
    "token_layer": "importance.tsv",
    "batch": "importance.tsv",
    "batch_layer": "importance.tsv",
    "signed": "importance.tsv",
    "signed_layer": "importance.tsv",
    "ablation": "ablation.dev.tsv",
    "confidence": "confidence.tsv",
    "lrp": "lrp.tsv",
    "causal": "causal.tsv",
    "optimal": "importance.tsv",
    "reversed": "importance.tsv",
    RANDOM: "model.json",
}
"""The file of the unpruned model that each criterion reads. Importance has four forms, `_layer` divided by the l2 norm
of the layer; `reversed` is the reverse of `example_layer`, the way of Michel et al. 2019, and `optimal` keeps the most
importance, by sentence, that the limits allow; `lrp` uses absolute shares, see `heads.pruning.criteria`. `random` has
several draws: random1, random2 and so on."""


def files_of(criteria: Iterable[str]) -> list[str]:
    """The files of the unpruned model that choices by these criteria read, each once."""
    return list(dict.fromkeys(["model.json", *(MEASURED_IN[name] for name in criteria)]))

"""Ways to choose which heads are kept, by the word that stands in paths. Imported by the Snakefile, so kept light."""

from __future__ import annotations

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
    "optimal": "importance.tsv",
    "optimal_parameters": "importance.tsv",
    "optimal_latency": "importance.tsv",
    "reversed": "importance.tsv",
    "random": "model.json",
}
"""By method, the file of the unpruned model that it reads. Importance is in its four forms, `_layer` divided by the l2
norm of the layer; `reversed` turns `example_layer` round, the way of Michel et al. 2019, and `optimal` takes the most
importance, by sentence, that the limits allow. Of `random` there are several draws: random1, random2 and so on."""

LATENCY = "latency.tsv"

SUBSET = "dsp"
"""Differentiable subset pruning, which chooses while it trains: a target of gates, as in gates/all/dsp-12."""

BY_GATES = {"gates": "keep", SUBSET: SUBSET}
"""Methods that choose while they train, and the word that begins their targets, as in gates/all/keep-12."""

CONTROL = "lam-0"
"""The target that closes no head: what training on alone does."""

SCOPE = "all"
"""The scope in which heads are chosen."""


def files_of(targets: list[str]) -> list[str]:
    """The files of the unpruned model that choices such as `random2-12` are made from, each once."""
    methods = [target.rpartition("-")[0] for target in targets]
    files = [MEASURED_IN[method.rstrip("0123456789")] for method in methods]
    return list(dict.fromkeys(["model.json", *files, *([LATENCY] if "optimal_latency" in methods else [])]))

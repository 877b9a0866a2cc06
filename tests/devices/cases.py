"""At least one case for every command that runs a model, and for every kind of model and way that it has."""

from typing import Any

from commands import COMMANDS, FOLDER, NOISY, Case
from experiments import LABELS, STUDENT, VECTORS

from heads.config.trainings import BaselineSettings
from known_experiment import SETTINGS

STRAIGHT = {**SETTINGS["gates"]["subset"], "straight_through": True}
OF_LABELS = (
    *("ablation", "baseline", "checkpoints", "classified", "confidence", "dynamics", "gates", "importance", "inspect"),
    *("lrp", "maps", "masked", "masking_curve", "roles", "selected", "speed"),
)
OF_VECTORS = ("ablation", "confidence", "gates", "inspect", "prune")
NOT_OF_WORDS = ("classified", "imported", "inspect", "prune", "translate")
"""Commands with cases of their own alone."""
SURGEON: dict[str, Any] = {"sentences": 60, "by": "surgeon", "updates": None, "minutes": 0}
IN_EIGHT_BITS = {"megabytes": 9, "format": "ctranslate2", "quantization": "int8"}
MADE_UP_FOR = {"grams": f"{FOLDER}/made/surgeon/grams.safetensors"}
EVERYTHING: dict[str, Any] = {
    "references": f"{FOLDER}/texts/test.target.txt",
    "trees": f"{FOLDER}/trees.conllu",
    "show": (2, 1),
    "causal": "",
}
"""Flags of `inspect`."""


def trained(**settings: Any) -> dict[str, dict[str, Any]]:
    """Settings of a training."""
    return {"training": settings}


def imported(**settings: Any) -> dict[str, dict[str, Any]]:
    """Settings of an import."""
    whole = BaselineSettings(pretrained=f"{FOLDER}/theirs", updates=2, average_last=1, **settings)
    return {"baseline": whole.model_dump(mode="json")}


CASES: dict[str, Case] = {
    **{name: Case(name) for name in COMMANDS if name not in NOT_OF_WORDS},
    **{f"{name} of {LABELS}": Case(name, LABELS) for name in OF_LABELS},
    **{f"{name} of {VECTORS}": Case(name, VECTORS, alike=name != "prune") for name in OF_VECTORS},
    "ablation_out_of_domain by a beam": Case(
        "ablation_out_of_domain", settings={"ablation": {"beam": 3, "sentences": 1}}
    ),
    "baseline by Muon": Case("baseline", settings=trained(optimizer="muon"), alike=False),
    "baseline in bf16": Case("baseline", settings={**trained(precision="bf16"), "model": NOISY}, alike=False),
    "cross_attention_roles without links": Case(
        "cross_attention_roles", flags=dict.fromkeys(("links", "source_words", "target_words"))
    ),
    "gates that are saved": Case("gates", flags={"scope": "enc_self", "save_every_seconds": 0}),
    "gates for a budget": Case("gates", flags={"target": "keep-7"}),
    "gates for budgets": Case("gates", flags={"target": "keep-2-3-1"}),
    "gates for a subset": Case("gates", flags={"target": "dsp-7"}),
    "gates straight through": Case("gates", flags={"target": "dsp-7"}, settings={"gates": {"subset": STRAIGHT}}),
    "gates by Muon": Case("gates", settings=trained(optimizer="muon"), alike=False),
    "imported": Case("imported", STUDENT, settings=imported()),
    "imported and trained on": Case("imported", STUDENT, settings=imported(fine_tuning_updates=2)),
    "imported with new attention": Case(
        "imported", STUDENT, settings=imported(fine_tuning_updates=2, decoder="self_attention")
    ),
    "inspect": Case("inspect", flags=EVERYTHING),
    "lrp of a student": Case("lrp", STUDENT, settings={"lrp": {"rules": ["z-plus"]}}),
    "prune": Case("prune", flags={"sentences": 60}, alike=False),
    "prune to a loss": Case("prune", LABELS, flags={"keep": None, "loss": 200}, alike=False),
    "prune by surgeon": Case("prune", flags={**SURGEON, "feedforward": 3, "minutes": 0.005}, alike=False),
    "prune to be faster": Case("prune", flags={**SURGEON, "keep": None, "faster": 1.0001}, alike=False),
    "prune to a size": Case("prune", flags={**SURGEON, **IN_EIGHT_BITS, "keep": None}, alike=False),
    "prune layers equally": Case("prune", flags={**SURGEON, "format": "ctranslate2", "uniform": ""}, alike=False),
    "prune the vocabulary": Case("prune", flags={**SURGEON, "keep": None, "vocabulary": ""}, alike=False),
    "prune vectors by surgeon": Case("prune", VECTORS, flags={**SURGEON, "minutes": 0.005}, alike=False),
    "prune labels by surgeon": Case("prune", LABELS, flags={**SURGEON, "minutes": 0.005}, alike=False),
    "masked by surgeon": Case("masked", flags={**MADE_UP_FOR, "selection": f"{FOLDER}/by_surgeon.tsv"}),
    "selected by surgeon": Case("selected", flags=MADE_UP_FOR),
    "surgeon of labels": Case("surgeon", LABELS),
    "surgeon of vectors": Case("surgeon", VECTORS),
    "translate": Case("translate", flags={"batch_tokens": 12, "max_subwords": 3, "references": f"{FOLDER}/three"}),
    "translate greedily": Case("translate", flags={"beam": 1}),
    "translate by a shortlist": Case("translate", STUDENT),
    "translate greedily by a shortlist": Case("translate", STUDENT, flags={"beam": 1}),
}  # fmt: skip

"""The flags that the workflow must pass to every command, and the runs that every table and figure reads.

Written by hand from the papers and the design, not from the rules. If you add a rule or a flag, add a line here.
"""

from __future__ import annotations

from collections.abc import Mapping

SIDES = ("source", "target")

OF = "results/{experiment}"
BPE, CORPUS, SETTINGS = f"{OF}/bpe", "results/corpora/{corpus}", "{experiment}: "
RUN, BASELINE = f"{OF}/{{run}}", f"{OF}/baseline/seed-{{seed}}"
GATES, PRUNED, SCRATCH, SELECTED, PENALTY_GATES, PENALTY_SCRATCH = (
    f"{OF}/{kind}/{{scope}}/{{target}}/seed-{{seed}}"
    for kind in ("gates", "pruned", "scratch", "selected", "penalty_gates", "penalty_scratch")
)
TABLE, FIGURE = "results/tables/table_{name}.tsv", "results/figures/{experiment}/{name}"
NUMBER, ELSEWHERE = "a number", "told by another test"

DEV = {"source": f"{BPE}/dev.source.safetensors", "target": f"{BPE}/dev.target.safetensors"}
TEST = {
    "source": f"{BPE}/test.source.safetensors",
    "references": f"{CORPUS}/test.target.txt",
    "target-bpe": f"{BPE}/target.model",
}


def training(stage: str, folder: str) -> dict[str, str]:
    """The flags of every training: subwords and dev references of its experiment, its own seed, its outputs."""
    told = {"settings": f"{SETTINGS}{stage}", "data": BPE, "references": f"{CORPUS}/dev.target.txt"}
    numbers = {"seed": "{seed}", "threads": NUMBER, "processes": NUMBER}
    return {"history": f"{folder}/train.jsonl", **told, **numbers, "model": folder}


def measured(stage: str, folder: str, out: str, settings: str = "") -> dict[str, str]:
    """The flags of every measure of a trained model, except for its data."""
    told = {"out": f"{folder}/{out}", "settings": f"{SETTINGS}{settings or stage}", "threads": NUMBER}
    return {**told, "model": folder}


COMMANDS: dict[str, Mapping[str, str]] = {
    # By rule, every flag of its command. The first is a file whose path shows which run the command belongs to; its
    # parts are filled into all the others.
    "download": {"out": "results/downloads/{file}", "url": ELSEWHERE, "sha256": ELSEWHERE},
    "model_of_others": {"output": "results/models/{model}", "": "marian"},
    "distilled": {
        "target": "results/distilled/{part}.target.txt",
        "source": "results/distilled/{part}.source.txt",
        "model": "results/models/marian",
        "text": "texts/unwritten",
        "sentences": "5",
        "after": "2",
        "threads": NUMBER,
    },
    "corpus": {
        "out-folder": CORPUS,
        "settings": ELSEWHERE,
        "downloads": "results/downloads",
        "threads": NUMBER,
    },
    "out_of_domain": {
        "out-folder": CORPUS,
        "settings": ELSEWHERE,
        "downloads": "results/downloads",
    },
    "trees": {
        "out": f"{CORPUS}/{{split}}.conllu",
        "settings": ELSEWHERE,
        "split": "{split}",
        "downloads": "results/downloads",
    },
    "alignment": {
        "links": f"{CORPUS}/{{split}}.alignment.txt",
        **{side: f"{CORPUS}/{{split}}.{side}.txt" for side in SIDES},
        **{f"{side}-words": f"{CORPUS}/{{split}}.{side}.words.txt" for side in SIDES},
        "settings": ELSEWHERE,
        "split": "{split}",
        "downloads": "results/downloads",
    },
    "bpe": {
        "model": f"{BPE}/source.model {BPE}/target.model",
        "settings": f"{SETTINGS}bpe",
        "side": "source target",
        "text": f"{CORPUS}/train.source.txt {CORPUS}/train.target.txt",
    },
    "encode": {
        "tokens": f"{BPE}/{{split}}.source.safetensors {BPE}/{{split}}.target.safetensors",
        "text": f"{CORPUS}/{{split}}.source.txt {CORPUS}/{{split}}.target.txt",
        "bpe": f"{BPE}/source.model {BPE}/target.model",
        "threads": NUMBER,
    },
    "imported_bpe": {"out-folder": BPE, "settings": f"{SETTINGS}imported_bpe"},
    "imported": {**training("imported", BASELINE), "checkpoints": f"{BASELINE}/checkpoints"},
    "baseline": {**training("baseline", BASELINE), "checkpoints": f"{BASELINE}/checkpoints"},
    "gates": {
        **training("gates", GATES),
        "start-model": BASELINE,
        "scope": "{scope}",
        "target": "{target}",
        "heads": f"{GATES}/heads.tsv",
        "gates-log": f"{GATES}/gates.jsonl",
    },
    "pruned": {
        "heads": f"{PRUNED}/heads.tsv",
        "start-model": GATES,
        "gates": f"{GATES}/heads.tsv",
        "model": PRUNED,
    },
    "scratch": {
        **training("scratch", SCRATCH),
        "unpruned": BASELINE,
        "heads": f"{PRUNED}/heads.tsv",
    },
    "selected": {
        **training("selected", SELECTED),
        "start-model": BASELINE,
        "heads": "{chosen_heads}",
    },
    "penalty_gates": {
        **training("penalty_gates", PENALTY_GATES),
        "unpruned": BASELINE,
        "scope": "{scope}",
        "target": "{target}",
        "heads": f"{PENALTY_GATES}/heads.tsv",
        "gates-log": f"{PENALTY_GATES}/gates.jsonl",
    },
    "penalty_scratch": {
        "heads": f"{PENALTY_SCRATCH}/heads.tsv",
        "start-model": PENALTY_GATES,
        "gates": f"{PENALTY_GATES}/heads.tsv",
        "model": PENALTY_SCRATCH,
    },
    "score": {
        "bleu": f"{RUN}/bleu.json",
        "translations": f"{RUN}/translations.txt",
        "statistics": f"{RUN}/bleu_statistics.tsv",
        "settings": f"{SETTINGS}score",
        "text": f"{CORPUS}/test.source.txt",
        "against": "{against}",
        "model": RUN,
        **TEST,
        "threads": NUMBER,
    },
    "classified": {
        "accuracy": f"{RUN}/accuracy.json",
        "predictions": f"{RUN}/predictions.txt",
        "settings": f"{SETTINGS}classified",
        "model": RUN,
        **TEST,
        "threads": NUMBER,
    },
    "confidence": {**measured("confidence", RUN, "confidence.tsv"), **DEV},
    "lrp": {**measured("lrp", RUN, "lrp.tsv"), **DEV, "conservation": f"{RUN}/lrp_conservation.tsv"},
    "importance": {**measured("importance", RUN, "importance.tsv"), **DEV},
    "causal": {**measured("causal", RUN, "causal.tsv"), **DEV},
    "roles": {
        **measured("roles", RUN, "roles.tsv"),
        "source-bpe": f"{BPE}/source.model",
        "train-source": f"{BPE}/train.source.safetensors",
        "trees": "{trees}",
        "alignment": f"{RUN}/alignment.tsv",
        "positions": f"{RUN}/positions.tsv",
    },
    "alignment_heads": {
        **measured("alignment_heads", RUN, "alignment_heads.tsv"),
        **{f"{side}-bpe": f"{BPE}/{side}.model" for side in SIDES},
        **{side: f"{CORPUS}/dev.{side}.txt" for side in SIDES},
        **{f"{side}-words": f"{CORPUS}/dev.{side}.words.txt" for side in SIDES},
        "links": f"{CORPUS}/dev.alignment.txt",
    },
    "cross_attention_roles": {
        **measured("cross_attention_roles", RUN, "cross_attention_roles.tsv"),
        "settings": f"{SETTINGS}alignment_heads",
        **{f"{side}-bpe": f"{BPE}/{side}.model" for side in SIDES},
        **{side: f"{CORPUS}/dev.{side}.txt" for side in SIDES},
        **{f"{side}-words": f"{{{side}_words}}" for side in SIDES},
        "links": "{links}",
    },
    "maps": {
        **measured("maps", RUN, "maps.json"),
        "source-bpe": f"{BPE}/source.model",
        "target-bpe": f"{BPE}/target.model",
        "sentences": "{shown}",
        "labels": "{shown_labels}",
        "trees": "{shown_trees}",
    },
    "ablation": {
        "masked": f"{RUN}/ablation.tsv",
        "masked-dev": f"{RUN}/ablation.dev.tsv",
        "alone": f"{RUN}/alone.tsv",
        "alone-dev": f"{RUN}/alone.dev.tsv",
        "layers": f"{RUN}/layers_to_one.tsv",
        "settings": f"{SETTINGS}ablation",
        "model": RUN,
        **TEST,
        "dev-source": f"{BPE}/dev.source.safetensors",
        "dev-references": f"{CORPUS}/dev.target.txt",
        "threads": NUMBER,
    },
    "ablation_out_of_domain": {
        "masked": f"{RUN}/ablation.out_of_domain.tsv",
        "settings": f"{SETTINGS}ablation",
        "model": RUN,
        "source": f"{BPE}/out_of_domain.source.safetensors",
        "references": f"{CORPUS}/out_of_domain.target.txt",
        "target-bpe": f"{BPE}/target.model",
        "threads": NUMBER,
    },
    "masking_curve": {
        **measured("masking_curve", RUN, "masking_curve.tsv"),
        **TEST,
        "importance": f"{RUN}/importance.tsv",
        "ablation-dev": f"{RUN}/ablation.dev.tsv",
        "ablation-test": f"{RUN}/ablation.tsv",
    },
    "checkpoints": {
        **measured("checkpoints", BASELINE, "checkpoints.tsv"),
        **TEST,
        "dev-source": f"{BPE}/dev.source.safetensors",
        "dev-target": f"{BPE}/dev.target.safetensors",
        "checkpoints": f"{BASELINE}/checkpoints",
        "train-source": f"{BPE}/train.source.safetensors",
        "train-target": f"{BPE}/train.target.safetensors",
    },
    "dynamics": {
        **measured("dynamics", BASELINE, "dynamics.tsv"),
        "source-bpe": f"{BPE}/source.model",
        "trees": "{trees}",
        "train-source": f"{BPE}/train.source.safetensors",
        "source": f"{BPE}/dev.source.safetensors",
        "target": f"{BPE}/dev.target.safetensors",
        "checkpoints": f"{BASELINE}/checkpoints",
    },
    "speed": {
        "out": f"{BASELINE}/speed.tsv",
        "settings": f"{SETTINGS}speed",
        "baseline": BASELINE,
        "runs": "{timed}",
        "source": f"{BPE}/test.source.safetensors",
        "threads": NUMBER,
    },
    "selection": {
        "out": f"{BASELINE}/selection.tsv",
        "settings": f"{SETTINGS}selection",
        "baseline": BASELINE,
        "targets": "{choices}",
    },
    "chosen_heads": {
        "out": f"{SELECTED}/heads.tsv",
        "settings": f"{SETTINGS}selection",
        "baseline": BASELINE,
        "targets": "{target}",
    },
    "masked": {
        **measured("masked", BASELINE, "masked.tsv"),
        **TEST,
        "selection": f"{BASELINE}/selection.tsv",
    },
    "compared": {
        "out": f"{BASELINE}/compared.tsv",
        "settings": f"{SETTINGS}compared",
        "baseline": BASELINE,
        "runs": "{compared}",
        "references": f"{CORPUS}/test.target.txt",
    },
    "parser_model": {
        "model": f"{OF}/parser/model",
        "settings": f"{SETTINGS}parser",
        "trees": f"{CORPUS}/train.conllu",
        "language": "{language}",
        "threads": NUMBER,
    },
    "parser": {
        "parsed": f"{OF}/parser/{{parsed}}.conllu",
        "model": f"{OF}/parser/model",
        "language": "{language}",
        "trees": "{parsed_trees}",
        "text": "{parsed_text}",
        "threads": NUMBER,
    },
    "parser_scores": {
        "scores": f"{OF}/parser/scores.tsv",
        "gold": f"{CORPUS}/dev.conllu",
        "parsed": f"{OF}/parser/stanza.conllu",
    },
    "table": {"out": TABLE, "name": "{name}", "runs": "{tabled}"},
    "corpus_table": {
        "out": TABLE,
        "name": "corpus",
        "experiments": "results/tiny results/far",
        "corpora": "results/corpora/tiny results/corpora/grounds",
    },
    "parser_table": {"out": TABLE, "name": "parser", "experiments": "results/tiny results/far"},
    "figure": {
        "out-pdf": f"{FIGURE}.pdf",
        "out-png": f"{FIGURE}.png",
        "name": "{name}",
        "runs": "{drawn}",
        "gates": "{drawn_by}",
    },
    "figure_across": {
        "out-pdf": "results/figures/{name}.pdf",
        "out-png": "results/figures/{name}.png",
        "name": "{name}",
        "runs": "{tabled}",
    },
    "animation": {
        "out-pdf": f"{FIGURE}.pdf",
        "out-png": f"{FIGURE}.png",
        "out-gif": f"{FIGURE}.gif",
        "name": "{name}",
        "runs": "{drawn}",
    },
    "explore": {
        "out": "results/{name}.html",
        "runs": "{tabled}",
        "tables": " ".join(
            f"results/tables/table_{name}.tsv"
            for name in ("measures", "michel_table1", "pruning", "selection", "claims", "scoreboard")
        ),
        "gates": ELSEWHERE,
        "figures": ELSEWHERE,
    },
}

TRAINING_DATA = {
    "target.model",
    *(f"{split}.{side}.safetensors" for split in ("train", "dev") for side in SIDES),
}
TREES = {
    "tiny": "gold=results/corpora/tiny/dev.conllu stanza=results/tiny/parser/stanza.conllu "
    "own=results/tiny/parser/own.conllu",
    "far": "own=results/far/parser/own.conllu stanza=results/far/parser/stanza.conllu "
    "gold=results/corpora/grounds/dev.conllu",
    "near": "own=results/near/parser/own.conllu",
    "taken": "own=results/taken/parser/own.conllu",
    "mine": "gold=results/corpora/mixed/dev.conllu",
    "echo": "own=results/echo/parser/own.conllu",
}
PARSED = {
    ("tiny", "stanza"): "results/corpora/tiny/dev.conllu",
    ("tiny", "own"): "results/corpora/tiny/dev.source.txt",
    ("far", "stanza"): "results/corpora/grounds/dev.conllu",
    ("far", "own"): "results/corpora/grounds/roles.source.txt",
    ("near", "own"): "results/corpora/bare/dev.source.txt",
    ("taken", "own"): "results/corpora/bare/dev.source.txt",
}
"""By experiment and source of trees, the parsed text: gold sentences, lines held out for roles, or the dev text."""
EXAMPLES = tuple(f"results/corpora/labelled/dev.{name}" for name in ("source.txt", "target.txt", "conllu"))
"""Inputs of a classifier's attention maps: pairs of sentences, their labels, and their trees."""
MEASURED_IN = {
    "token": "importance.tsv",
    "confidence": "confidence.tsv",
    "lrp": "lrp.tsv",
    "ablation": "ablation.dev.tsv",
    "optimal": "importance.tsv",
    "random1": "",
}
"""Inputs of the choices of `far`: measures of the unpruned model, never on the test set."""
CHOICES = {
    "far": [f"{method}-48" for method in MEASURED_IN],
    "tiny": [
        f"{method}-{budget}"
        for method in (
            *("example_layer", "signed", "ablation", "confidence", "lrp", "causal"),
            *("optimal", "random1", "random2", "reversed"),
        )
        for budget in (6, 9)
    ],
}

DRIVEN = ("gates/*/keep-*", "pruned/*/keep-*", "selected/*/lam-*", "selected/*/keep-*")
LAM, BUDGET, FIRST = ("gates/*/lam-*", "pruned/*/lam-*", "scratch/*/lam-*"), "*/keep-*", "baseline/*"
CURVES = (FIRST, LAM[0], LAM[2], DRIVEN[0], *DRIVEN[2:])
READ = {
    # By table and figure, the runs that it reads, as patterns for their folders.
    "pruning": (FIRST, *LAM, *DRIVEN),
    "scratch_curve": CURVES,
    "spare": (FIRST, "pruned/*/lam-*", "pruned/*/keep-*"),
    "dependencies": (FIRST,),
    "roles": (FIRST, "pruned/*/lam-*", "pruned/*/keep-*", "scratch/*"),
    "alignment": (FIRST, "pruned/*/lam-*", "pruned/*/keep-*", "scratch/*"),
    "role_drift": (FIRST, "pruned/*/lam-*", "pruned/*/keep-*"),
    "speed": (FIRST,),
    "michel_table1": (FIRST,),
    "michel_table2": (FIRST,),
    "michel_masking_curve": (FIRST,),
    "measures": (FIRST, "gates/*/lam-*", "gates/*/keep-*"),
    "correlations": (FIRST, "gates/*/lam-*", "gates/*/keep-*"),
    "selection": (FIRST,),
    **dict.fromkeys(("claims", "scoreboard"), (FIRST, *LAM, *DRIVEN, "penalty_scratch/*/lam-*")),
    "michel_checkpoints": (FIRST,),
    "dynamics": (FIRST,),
    "relative_positions": (FIRST,),
    "dependency_scores": (FIRST,),
    "hard_concrete": ("gates/*/lam-*", "gates/*/keep-*"),
    "heads_needed": (FIRST, "gates/*/lam-*", "gates/*/keep-*"),
    "head_functions": (FIRST,),
    "relevance_all": (FIRST,),
    "attention_maps": (FIRST,),
    "alignment_heads": (FIRST, "pruned/all/lam-*", "pruned/all/keep-*"),
    "cross_attention": (FIRST,),
    "bleu_encoder_heads": (FIRST, "pruned/enc_self/lam-*", "pruned/enc_self/keep-*"),
    "functions_retained": (FIRST, "pruned/*/lam-*", "pruned/*/keep-*", "scratch/*/lam-*"),
    "heads_by_type": (FIRST, "pruned/all/lam-*", "pruned/all/keep-*"),
    "heads_by_layer": (FIRST, "pruned/all/lam-*", "pruned/all/keep-*"),
    "score_scratch": (FIRST, "pruned/all/lam-*", "pruned/all/keep-*", "scratch/all/lam-*"),
    "scratch_curves": CURVES,
    "michel_fig1": (FIRST,),
    "michel_fig2": (FIRST,),
    "michel_fig3": (FIRST,),
    "michel_fig4": (FIRST,),
    "michel_fig5": (FIRST,),
    "michel_layers": (FIRST,),
    "gates_closing": ("gates/all/lam-*", "gates/all/keep-*"),
    "explore": (FIRST, *LAM, "gates/*/keep-*", "pruned/*/keep-*"),
}

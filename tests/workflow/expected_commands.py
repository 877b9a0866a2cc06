"""The flags that the workflow must pass to every command, and the runs that every table and figure reads.

Written by hand from the papers and the design, not from the rules. If you add a rule or a flag, add a line here.
"""

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
GRAMS = f"{BASELINE}/grams.safetensors"
CHOSEN_HEADS = {"heads": "{chosen_heads}", "grams": "{grams}"}
NUMBER, ELSEWHERE = "a number", "told by another test"

BPES = {f"{side}-bpe": f"{BPE}/{side}.model" for side in SIDES}
OF_TEXT = {"settings": ELSEWHERE, "downloads": "results/downloads"}
DEV = {side: f"{BPE}/dev.{side}.safetensors" for side in SIDES}
DEV_TEXT = {side: f"{CORPUS}/dev.{side}.txt" for side in SIDES}
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


def gated(stage: str, folder: str) -> dict[str, str]:
    """The flags of every training with gates."""
    gates = {"scope": "{scope}", "target": "{target}", "gates-log": f"{folder}/gates.jsonl"}
    return {**training(stage, folder), **gates, "heads": f"{folder}/heads.tsv"}


def pruned(folder: str, gates: str) -> dict[str, str]:
    """The flags that remove the heads whose gates closed in a training."""
    return {"heads": f"{folder}/heads.tsv", "start-model": gates, "gates": f"{gates}/heads.tsv", "model": folder}


def measured(stage: str, folder: str, out: str, settings: str = "") -> dict[str, str]:
    """The flags of every measure of a trained model, except for its data."""
    told = {"out": f"{folder}/{out}", "settings": f"{SETTINGS}{settings or stage}", "threads": NUMBER}
    return {**told, "model": folder}


COMMANDS: dict[str, Mapping[str, str]] = {
    # By rule, every flag of its command. The first is a file whose path shows which run the command belongs to; its
    # parts are filled into all the others.
    "fetch": {"out": "results/downloads/{file}", "url": ELSEWHERE, "sha256": ELSEWHERE},
    "import_model": {"output": "results/models/{model}", "": "marian"},
    "distilled": {
        "target": "results/distilled/{part}.target.txt",
        "source": "results/distilled/{part}.source.txt",
        "model": "results/models/marian",
        "text": "texts/unwritten",
        "sentences": "5",
        "after": "2",
        "threads": NUMBER,
    },
    "corpus": {"out-folder": CORPUS, **OF_TEXT, "threads": NUMBER},
    "out_of_domain": {"out-folder": CORPUS, **OF_TEXT},
    "trees": {"out": f"{CORPUS}/{{split}}.conllu", **OF_TEXT, "split": "{split}"},
    "alignment": {
        "links": f"{CORPUS}/{{split}}.alignment.txt",
        **{side: f"{CORPUS}/{{split}}.{side}.txt" for side in SIDES},
        **{f"{side}-words": f"{CORPUS}/{{split}}.{side}.words.txt" for side in SIDES},
        **OF_TEXT,
        "split": "{split}",
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
    "gates": {**gated("gates", GATES), "start-model": BASELINE},
    "pruned": pruned(PRUNED, GATES),
    "scratch": {**training("scratch", SCRATCH), "unpruned": BASELINE, "heads": f"{PRUNED}/heads.tsv"},
    "selected": {**training("selected", SELECTED), "start-model": BASELINE, **CHOSEN_HEADS},
    "penalty_gates": {**gated("penalty_gates", PENALTY_GATES), "unpruned": BASELINE},
    "penalty_scratch": pruned(PENALTY_SCRATCH, PENALTY_GATES),
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
        "text": "{untreed}",
        "coverage": f"{RUN}/coverage.tsv",
        "positions": f"{RUN}/positions.tsv",
    },
    "alignment_heads": {
        **measured("alignment_heads", RUN, "alignment_heads.tsv"),
        **BPES,
        **DEV_TEXT,
        **{f"{side}-words": f"{CORPUS}/dev.{side}.words.txt" for side in SIDES},
        "links": f"{CORPUS}/dev.alignment.txt",
    },
    "cross_attention_roles": {
        **measured("cross_attention_roles", RUN, "cross_attention_roles.tsv"),
        "settings": f"{SETTINGS}alignment_heads",
        **BPES,
        **DEV_TEXT,
        **{f"{side}-words": f"{{{side}_words}}" for side in SIDES},
        "links": "{links}",
    },
    "maps": {
        **measured("maps", RUN, "maps.json"),
        **BPES,
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
        **{f"{split}-{side}": f"{BPE}/{split}.{side}.safetensors" for split in ("train", "dev") for side in SIDES},
        "checkpoints": f"{BASELINE}/checkpoints",
    },
    "dynamics": {
        **measured("dynamics", BASELINE, "dynamics.tsv"),
        "source-bpe": f"{BPE}/source.model",
        "trees": "{trees}",
        "text": "{untreed}",
        "train-source": f"{BPE}/train.source.safetensors",
        **DEV,
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
    "selection_of_choice": {
        "out": f"{SELECTED}/heads.tsv",
        "settings": f"{SETTINGS}selection",
        "baseline": BASELINE,
        "targets": "{target}",
    },
    "masked": {
        **measured("masked", BASELINE, "masked.tsv"),
        **TEST,
        "selection": f"{BASELINE}/selection.tsv",
        "grams": "{grams}",
    },
    "surgeon": {
        **measured("surgeon", BASELINE, "surgeon.tsv"),
        **DEV,
        **{f"train-{side}": f"{BPE}/train.{side}.safetensors" for side in SIDES},
        "grams": GRAMS,
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
    "table": {"out": TABLE, "name": "{name}", "runs": "{tabled}"},
    "table_corpus": {
        "out": TABLE,
        "name": "corpus",
        "experiments": "results/tiny results/far",
        "corpora": "results/corpora/tiny results/corpora/grounds",
    },
    "table_parser": {
        "out": TABLE,
        "name": "parser",
        "experiments": "results/tiny results/far",
        "corpora": "results/corpora/tiny results/corpora/grounds",
    },
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
    "figure_animated": {
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
    "stratified1": "importance.tsv",
}
"""Inputs of the choices of `far`: measures of the unpruned model, never on the test set."""
CHOICES = {
    "far": [f"{method}-48" for method in MEASURED_IN],
    "tiny": [
        f"{method}-{budget}"
        for method in (
            *("example_layer", "signed", "ablation", "confidence", "lrp", "causal", "surgeon"),
            *("optimal", "random1", "random2", "stratified1", "stratified2", "reversed"),
        )
        for budget in (6, 9)
    ],
}

FIRST, DRIVEN = "baseline/*", ("gates/*/keep-*", "pruned/*/keep-*", "selected/*/lam-*", "selected/*/keep-*")
LAM = ("gates/*/lam-*", "pruned/*/lam-*", "scratch/*/lam-*")
GATED, LEFT = (FIRST, "gates/*/lam-*", "gates/*/keep-*"), (FIRST, "pruned/*/lam-*", "pruned/*/keep-*")
LEFT_OF_ALL = (FIRST, "pruned/all/lam-*", "pruned/all/keep-*")
CURVES = (FIRST, LAM[0], LAM[2], DRIVEN[0], *DRIVEN[2:])
OF_BASELINES = (
    *("dependencies", "speed", "michel_table1", "michel_table2", "michel_masking_curve", "selection"),
    *("michel_checkpoints", "dynamics", "relative_positions", "dependency_scores", "head_functions", "relevance_all"),
    *("attention_maps", "cross_attention", "michel_layers", *(f"michel_fig{number}" for number in range(1, 6))),
)
READ = {
    # By table and figure, the runs that it reads, as patterns for their folders.
    **dict.fromkeys(OF_BASELINES, (FIRST,)),
    **dict.fromkeys(("spare", "role_drift"), LEFT),
    "units": (FIRST, "pruned/feedforward/*", "pruned/everything/*"),
    **dict.fromkeys(("roles", "alignment"), (*LEFT, "scratch/*")),
    **dict.fromkeys(("measures", "correlations", "heads_needed"), GATED),
    **dict.fromkeys(("alignment_heads", "heads_by_type", "heads_by_layer"), LEFT_OF_ALL),
    **dict.fromkeys(("scratch_curve", "scratch_curves"), CURVES),
    **dict.fromkeys(("claims", "scoreboard"), (FIRST, *LAM, *DRIVEN, "penalty_scratch/*/lam-*")),
    "pruning": (FIRST, *LAM, *DRIVEN),
    "hard_concrete": GATED[1:],
    "bleu_encoder_heads": (FIRST, "pruned/enc_self/lam-*", "pruned/enc_self/keep-*"),
    "functions_retained": (*LEFT, "scratch/*/lam-*"),
    "score_scratch": (*LEFT_OF_ALL, "scratch/all/lam-*"),
    "gates_closing": ("gates/all/lam-*", "gates/all/keep-*"),
    "explore": (FIRST, *LAM, "gates/*/keep-*", "pruned/*/keep-*"),
}

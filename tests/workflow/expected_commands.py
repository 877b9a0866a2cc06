"""What the workflow must tell every command, and the runs that every table and figure reads.

Written by hand from the papers and the design, not from the rules. If you add a rule, add a line to COMMANDS; of a flag
only what its name does not say.
"""

from collections.abc import Mapping

SIDES = ("source", "target")

OF = "results/{experiment}"
BPE, CORPUS, SETTINGS = f"{OF}/bpe", "results/corpora/{corpus}", "{experiment}: "
RUN, BASELINE = f"{OF}/{{run}}", f"{OF}/baseline/seed-{{seed}}"
GATES, PRUNED, SCRATCH, SELECTED, GATES_FROM_SCRATCH, PRUNED_FROM_SCRATCH = (
    f"{OF}/{kind}/{{scope}}/{{target}}/seed-{{seed}}"
    for kind in ("gates", "pruned", "scratch", "selected", "gates_from_scratch", "pruned_from_scratch")
)
TABLE, FIGURE = "results/tables/table_{name}.tsv", "results/figures/{experiment}/{name}"
GRAMS = f"{BASELINE}/grams.safetensors"
NUMBER, ELSEWHERE = "a number", "told by another test"

BY_NAME = {
    # What a flag is told in every command that has it, unless COMMANDS says otherwise; folder: that of the first flag.
    **{name: f"{{{name}}}" for name in ("seed", "scope", "split", "name", "language")},
    **dict.fromkeys(("threads", "processes"), NUMBER),
    **{f"{side}-bpe": f"{BPE}/{side}.model" for side in SIDES},
    **{f"{split}-{side}": f"{BPE}/{split}.{side}.safetensors" for split in ("train", "dev") for side in SIDES},
    "settings": f"{SETTINGS}{{rule}}",
    "data": BPE,
    "downloads": "results/downloads",
    "model": "{folder}",
    "heads": "{folder}/heads.tsv",
    "gates-log": "{folder}/gates.jsonl",
    "baseline": BASELINE,
    "start-model": BASELINE,
    "unpruned": BASELINE,
    "checkpoints": f"{BASELINE}/checkpoints",
}
OF_CORPUS = {"settings": ELSEWHERE}
DEV = {side: f"{BPE}/dev.{side}.safetensors" for side in SIDES}
DEV_TEXT = {side: f"{CORPUS}/dev.{side}.txt" for side in SIDES}
TEST = {"source": f"{BPE}/test.source.safetensors", "references": f"{CORPUS}/test.target.txt"}
WHILE_TRAINING = {"references": f"{CORPUS}/dev.target.txt"}
TWO_CORPORA = {
    "experiments": "results/tiny results/far",
    "corpora": "results/corpora/tiny results/corpora/grounds",
}

COMMANDS: dict[str, Mapping[str, str]] = {
    # By rule, what names do not say. The first flag is a file whose path shows which run the command belongs to; its
    # parts are filled into all the others.
    "fetch": {"out": "results/downloads/{file}", "url": ELSEWHERE, "sha256": ELSEWHERE},
    "import_model": {"output": "results/models/{model}", "": "marian"},
    "distilled": {
        **{side: f"results/distilled/{{part}}.{side}.txt" for side in SIDES},
        **{"model": "results/models/marian", "text": "texts/unwritten", "sentences": "5", "after": "2"},
    },
    "corpus": {"out-folder": CORPUS, **OF_CORPUS},
    "out_of_domain": {"out-folder": CORPUS, **OF_CORPUS},
    "trees": {"out": f"{CORPUS}/{{split}}.conllu", **OF_CORPUS},
    "alignment": {
        **{"links": f"{CORPUS}/{{split}}.alignment.txt", **OF_CORPUS},
        **{side: f"{CORPUS}/{{split}}.{side}.txt" for side in SIDES},
        **{f"{side}-words": f"{CORPUS}/{{split}}.{side}.words.txt" for side in SIDES},
    },
    "bpe": {
        "model": f"{BPE}/source.model {BPE}/target.model",
        "side": "source target",
        "text": f"{CORPUS}/train.source.txt {CORPUS}/train.target.txt",
    },
    "encode": {
        "tokens": f"{BPE}/{{split}}.source.safetensors {BPE}/{{split}}.target.safetensors",
        "text": f"{CORPUS}/{{split}}.source.txt {CORPUS}/{{split}}.target.txt",
        "bpe": f"{BPE}/source.model {BPE}/target.model",
    },
    "imported_bpe": {"out-folder": BPE},
    "imported": {"history": f"{BASELINE}/train.jsonl", **WHILE_TRAINING},
    "baseline": {"history": f"{BASELINE}/train.jsonl", **WHILE_TRAINING},
    "gates": {"history": f"{GATES}/train.jsonl", "target": "{target}", **WHILE_TRAINING},
    "pruned": {"heads": f"{PRUNED}/heads.tsv", "start-model": GATES, "gates": f"{GATES}/heads.tsv"},
    "scratch": {"history": f"{SCRATCH}/train.jsonl", "heads": f"{PRUNED}/heads.tsv", **WHILE_TRAINING},
    "selected": {
        **{"history": f"{SELECTED}/train.jsonl", "heads": "{chosen_heads}", "grams": "{grams}"},
        **WHILE_TRAINING,
    },
    "gates_from_scratch": {"history": f"{GATES_FROM_SCRATCH}/train.jsonl", "target": "{target}", **WHILE_TRAINING},
    "pruned_from_scratch": {
        **{"heads": f"{PRUNED_FROM_SCRATCH}/heads.tsv", "start-model": GATES_FROM_SCRATCH},
        **{"gates": f"{GATES_FROM_SCRATCH}/heads.tsv"},
    },
    "score": {
        **{"bleu": f"{RUN}/bleu.json", "translations": f"{RUN}/translations.txt"},
        **{"statistics": f"{RUN}/bleu_statistics.tsv", "text": f"{CORPUS}/test.source.txt", "against": "{against}"},
        **TEST,
    },
    "classified": {"accuracy": f"{RUN}/accuracy.json", "predictions": f"{RUN}/predictions.txt", **TEST},
    "confidence": {"out": f"{RUN}/confidence.tsv", **DEV},
    "lrp": {"out": f"{RUN}/lrp.tsv", **DEV, "conservation": f"{RUN}/lrp_conservation.tsv"},
    "importance": {"out": f"{RUN}/importance.tsv", **DEV},
    "causal": {"out": f"{RUN}/causal.tsv", **DEV},
    "roles": {
        **{"out": f"{RUN}/roles.tsv", "coverage": f"{RUN}/coverage.tsv", "positions": f"{RUN}/positions.tsv"},
        **{"trees": "{trees}", "text": "{untreed}"},
    },
    "alignment_heads": {
        **{"out": f"{RUN}/alignment_heads.tsv", "links": f"{CORPUS}/dev.alignment.txt", **DEV_TEXT},
        **{f"{side}-words": f"{CORPUS}/dev.{side}.words.txt" for side in SIDES},
    },
    "cross_attention_roles": {
        **{"out": f"{RUN}/cross_attention_roles.tsv", "settings": f"{SETTINGS}alignment_heads", **DEV_TEXT},
        **{"source-words": "{source_words}", "target-words": "{target_words}", "links": "{links}"},
    },
    "maps": {
        **{"out": f"{RUN}/maps.json", "sentences": "{shown}", "labels": "{shown_labels}", "trees": "{shown_trees}"},
    },
    "ablation": {
        **{"masked": f"{RUN}/ablation.tsv", "masked-dev": f"{RUN}/ablation.dev.tsv", "alone": f"{RUN}/alone.tsv"},
        **{"alone-dev": f"{RUN}/alone.dev.tsv", "layers": f"{RUN}/layers_to_one.tsv"},
        **{**TEST, "dev-references": f"{CORPUS}/dev.target.txt"},
    },
    "ablation_out_of_domain": {
        **{"masked": f"{RUN}/ablation.out_of_domain.tsv", "settings": f"{SETTINGS}ablation"},
        **{"source": f"{BPE}/out_of_domain.source.safetensors", "references": f"{CORPUS}/out_of_domain.target.txt"},
    },
    "masking_curve": {
        **{"out": f"{RUN}/masking_curve.tsv", **TEST, "importance": f"{RUN}/importance.tsv"},
        **{"ablation-dev": f"{RUN}/ablation.dev.tsv", "ablation-test": f"{RUN}/ablation.tsv"},
    },
    "checkpoints": {"out": f"{BASELINE}/checkpoints.tsv", **TEST},
    "dynamics": {"out": f"{BASELINE}/dynamics.tsv", "trees": "{trees}", "text": "{untreed}", **DEV},
    "speed": {"out": f"{BASELINE}/speed.tsv", "runs": "{timed}", "source": f"{BPE}/test.source.safetensors"},
    "selection": {"out": f"{BASELINE}/selection.tsv", "targets": "{choices}"},
    "selection_of_choice": {
        **{"out": f"{SELECTED}/heads.tsv", "settings": f"{SETTINGS}selection", "targets": "{target}"},
    },
    "masked": {
        **{"out": f"{BASELINE}/masked.tsv", **TEST, "selection": f"{BASELINE}/selection.tsv", "grams": "{grams}"},
    },
    "surgeon": {"out": f"{BASELINE}/surgeon.tsv", **DEV, "grams": GRAMS},
    "compared": {
        **{"out": f"{BASELINE}/compared.tsv", "runs": "{compared}", "references": f"{CORPUS}/test.target.txt"},
    },
    "parser_model": {
        **{"model": f"{OF}/parser/model", "settings": f"{SETTINGS}parser", "trees": f"{CORPUS}/train.conllu"},
    },
    "parser": {
        **{"parsed": f"{OF}/parser/{{parsed}}.conllu", "model": f"{OF}/parser/model"},
        **{"trees": "{parsed_trees}", "text": "{parsed_text}"},
    },
    "table": {"out": TABLE, "runs": "{tabled}"},
    "table_corpus": {"out": TABLE, "name": "corpus", **TWO_CORPORA},
    "table_parser": {"out": TABLE, "name": "parser", **TWO_CORPORA},
    "figure": {"out-pdf": f"{FIGURE}.pdf", "out-png": f"{FIGURE}.png", "runs": "{drawn}", "gates": "{drawn_by}"},
    "figure_across": {
        **{"out-pdf": "results/figures/{name}.pdf", "out-png": "results/figures/{name}.png", "runs": "{tabled}"},
    },
    "figure_animated": {
        **{"out-pdf": f"{FIGURE}.pdf", "out-png": f"{FIGURE}.png", "out-gif": f"{FIGURE}.gif", "runs": "{drawn}"},
    },
    "explore": {
        **{"out": "results/{name}.html", "runs": "{tabled}", "gates": ELSEWHERE, "figures": ELSEWHERE},
        "tables": " ".join(
            f"results/tables/table_{name}.tsv"
            for name in ("measures", "michel_table1", "pruning", "selection", "claims", "scoreboard")
        ),
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
    **dict.fromkeys(("claims", "scoreboard"), (FIRST, *LAM, *DRIVEN, "pruned_from_scratch/*/lam-*")),
    "pruning": (FIRST, *LAM, *DRIVEN),
    "hard_concrete": GATED[1:],
    "bleu_encoder_heads": (FIRST, "pruned/enc_self/lam-*", "pruned/enc_self/keep-*"),
    "functions_retained": (*LEFT, "scratch/*/lam-*"),
    "score_scratch": (*LEFT_OF_ALL, "scratch/all/lam-*"),
    "gates_closing": ("gates/all/lam-*", "gates/all/keep-*"),
    "explore": (FIRST, *LAM, "gates/*/keep-*", "pruned/*/keep-*"),
}

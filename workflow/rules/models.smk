# The kinds of trained models: baseline, gates, pruned, scratch, and pruned from scratch. Each run has one folder.
# A rule that uses another one inherits neither `cache` nor `localrule`: they are repeated.

# The inputs of every training; the command gets the folder of the subwords.
TRAINING_DATA = {
    "data": [
        f"{BPE}/{name}"
        for name in (
            "target.model",
            "train.source.safetensors",
            "train.target.safetensors",
            "dev.source.safetensors",
            "dev.target.safetensors",
        )
    ],
    "references": corpus_file("dev.target.txt"),
}


rule baseline:
    """Train the unpruned Transformer (Voita et al., sec. 3)."""
    input:
        **TRAINING_DATA,
        source_bpe=f"{BPE}/source.model",
    output:
        model=f"{BASELINE}/model.safetensors",
        shape=f"{BASELINE}/model.json",
        history=f"{BASELINE}/train.jsonl",
        # A folder, because an early stop may leave fewer checkpoints than asked for.
        checkpoints=directory(f"{BASELINE}/checkpoints"),
    log:
        f"{BASELINE}/log/baseline.txt",
    benchmark:
        f"{BASELINE}/bench/baseline.tsv"
    wildcard_constraints:
        experiment=TRAINED_HERE,
    cache: CACHED
    # Trainings come before short jobs, which wait for them and fill the gaps that they leave.
    priority: 1
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=1440,
        processes=1,
    params:
        settings=settings_of("baseline"),
        stage="baseline",
        data=lambda wildcards, input: str(Path(input.data[0]).parent),
        own=flags("seed", "model", "history", "checkpoints"),
    shell:
        "python -m heads {params.stage:q} --settings {params.settings:q} --data {params.data:q}"
        " --references {input.references:q} --threads {threads} --processes {resources.processes}"
        " {params.own:q} > {log:q} 2>&1"


use rule baseline as imported with:
    """Use an external model as the unpruned one, as it is or fine-tuned on the corpus."""
    input:
        **TRAINING_DATA,
        pretrained=lambda wildcards: PLAN.pretrained_files(wildcards.experiment),
    output:
        model=f"{BASELINE}/model.safetensors",
        shape=f"{BASELINE}/model.json",
        history=f"{BASELINE}/train.jsonl",
        checkpoints=directory(f"{BASELINE}/checkpoints"),
    log:
        f"{BASELINE}/log/imported.txt",
    benchmark:
        f"{BASELINE}/bench/imported.tsv"
    wildcard_constraints:
        experiment=IMPORTED,
    params:
        settings=settings_of("imported"),
        stage="imported",
        own=flags("seed", "model", "history", "checkpoints"),


use rule baseline as gates with:
    """Fine-tune the baseline with hard-concrete gates on one scope of heads (Voita et al., sec. 6)."""
    input:
        **TRAINING_DATA,
        start_model=fitting(rules.baseline.output.model),
        start_shape=rules.baseline.output.shape,
    output:
        model=f"{GATES}/model.safetensors",
        shape=f"{GATES}/model.json",
        history=f"{GATES}/train.jsonl",
        heads=f"{GATES}/heads.tsv",
        gates_log=f"{GATES}/gates.jsonl",
    log:
        f"{GATES}/log/gates.txt",
    benchmark:
        f"{GATES}/bench/gates.tsv"
    wildcard_constraints:
        experiment=any_of(PLAN.experiments),
    cache: CACHED
    threads: 1
    params:
        settings=settings_of("gates"),
        stage="gates",
        own=flags("seed", "start_model", "scope", "target", "model", "history", "heads", "gates_log"),


rule pruned:
    """Remove the heads whose gates closed, and check that the model still computes the same function."""
    input:
        start_model=rules.gates.output.model,
        start_shape=rules.gates.output.shape,
        gates=rules.gates.output.heads,
    output:
        model=f"{PRUNED}/model.safetensors",
        shape=f"{PRUNED}/model.json",
        heads=f"{PRUNED}/heads.tsv",
    log:
        f"{PRUNED}/log/pruned.txt",
    benchmark:
        f"{PRUNED}/bench/pruned.tsv"
    cache: CACHED
    priority: FIRST
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        own=flags("start_model", "gates", "model", "heads"),
    shell:
        "python -m heads pruned {params.own:q} > {log:q} 2>&1"


use rule gates as scratch with:
    """Train a model with the heads that pruning left, from a fresh initialisation (Voita et al., Table 2)."""
    input:
        **TRAINING_DATA,
        unpruned=rules.baseline.output.shape,
        # The table, not the pruned model: only which heads are left matters here.
        heads=rules.pruned.output.heads,
    output:
        model=f"{SCRATCH}/model.safetensors",
        shape=f"{SCRATCH}/model.json",
        history=f"{SCRATCH}/train.jsonl",
    log:
        f"{SCRATCH}/log/scratch.txt",
    benchmark:
        f"{SCRATCH}/bench/scratch.tsv"
    cache: CACHED
    params:
        settings=settings_of("scratch"),
        stage="scratch",
        own=flags("seed", "unpruned", "heads", "model", "history"),


use rule gates as penalty_gates with:
    """Train a model from scratch with gates and their penalty (Voita et al., footnote 8)."""
    input:
        **TRAINING_DATA,
        unpruned=fitting(rules.baseline.output.shape),
    output:
        model=f"{PENALTY_GATES}/model.safetensors",
        shape=f"{PENALTY_GATES}/model.json",
        history=f"{PENALTY_GATES}/train.jsonl",
        heads=f"{PENALTY_GATES}/heads.tsv",
        gates_log=f"{PENALTY_GATES}/gates.jsonl",
    log:
        f"{PENALTY_GATES}/log/penalty_gates.txt",
    benchmark:
        f"{PENALTY_GATES}/bench/penalty_gates.tsv"
    cache: CACHED
    params:
        settings=settings_of("penalty_gates"),
        stage="penalty_gates",
        own=flags("seed", "unpruned", "scope", "target", "model", "history", "heads", "gates_log"),


use rule pruned as penalty_scratch with:
    """Remove the heads whose gates closed in a training from scratch, with the same check."""
    input:
        start_model=rules.penalty_gates.output.model,
        start_shape=rules.penalty_gates.output.shape,
        gates=rules.penalty_gates.output.heads,
    output:
        model=f"{PENALTY_SCRATCH}/model.safetensors",
        shape=f"{PENALTY_SCRATCH}/model.json",
        heads=f"{PENALTY_SCRATCH}/heads.tsv",
    log:
        f"{PENALTY_SCRATCH}/log/penalty_scratch.txt",
    benchmark:
        f"{PENALTY_SCRATCH}/bench/penalty_scratch.tsv"
    cache: CACHED

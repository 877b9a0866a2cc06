# The kinds of trained models: baseline, gates, pruned, scratch, and pruned from scratch. Each run has one folder.

# The data that every training reads; the command is given the folder.
TRAINING_DATA = [
    f"{BPE}/{name}"
    for name in (
        "target.model",
        "train.source.safetensors",
        "train.target.safetensors",
        "dev.source.safetensors",
        "dev.target.safetensors",
    )
]


rule baseline:
    """Train the unpruned Transformer (Voita et al., sec. 3)."""
    input:
        settings="results/{experiment}/settings/baseline.yaml",
        data=TRAINING_DATA,
        source_bpe=f"{BPE}/source.model",
        references=corpus_file("dev.target.txt"),
    output:
        model=f"{BASELINE}/model.safetensors",
        shape=f"{BASELINE}/model.json",
        history=f"{BASELINE}/train.jsonl",
        # A folder, as an early stop may leave fewer checkpoints than were asked for.
        checkpoints=directory(f"{BASELINE}/checkpoints"),
    log:
        f"{BASELINE}/log/baseline.txt",
    benchmark:
        f"{BASELINE}/bench/baseline.tsv"
    cache: CACHED
    conda:
        "../../envs/torch.yaml"
    threads: 2
    resources:
        mem_mb=2000,
        runtime=1440,
        processes=1,
    params:
        data=lambda wildcards, input: str(Path(input.data[0]).parent),
        seed=lambda wildcards: wildcards.seed,
        model=folder_of("model"),
    shell:
        "python -m heads baseline --settings {input.settings:q} --data {params.data:q}"
        " --references {input.references:q} --seed {params.seed:q} --threads {threads}"
        " --processes {resources.processes}"
        " --model {params.model:q} --history {output.history:q} --checkpoints {output.checkpoints:q}"
        " > {log:q} 2>&1"


rule gates:
    """Fine-tune the baseline with hard-concrete gates on one scope of heads (Voita et al., sec. 6)."""
    input:
        settings="results/{experiment}/settings/gates.yaml",
        data=TRAINING_DATA,
        references=corpus_file("dev.target.txt"),
        start_model=rules.baseline.output.model,
        start_shape=rules.baseline.output.shape,
    output:
        model=f"{GATES}/model.safetensors",
        shape=f"{GATES}/model.json",
        history=f"{GATES}/train.jsonl",
        heads=f"{GATES}/heads.tsv",
        closing=f"{GATES}/gates.jsonl",
    log:
        f"{GATES}/log/gates.txt",
    benchmark:
        f"{GATES}/bench/gates.tsv"
    cache: CACHED
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=1440,
        processes=1,
    params:
        data=lambda wildcards, input: str(Path(input.data[0]).parent),
        seed=lambda wildcards: wildcards.seed,
        scope=lambda wildcards: wildcards.scope,
        target=lambda wildcards: wildcards.target,
        start_model=folder_of("start_model"),
        model=folder_of("model"),
    shell:
        "python -m heads gates --settings {input.settings:q} --data {params.data:q}"
        " --references {input.references:q} --seed {params.seed:q} --threads {threads}"
        " --processes {resources.processes}"
        " --start-model {params.start_model:q}"
        " --scope {params.scope:q} --target {params.target:q}"
        " --model {params.model:q} --history {output.history:q}"
        " --heads {output.heads:q} --gates-log {output.closing:q} > {log:q} 2>&1"


rule pruned:
    """Remove the heads whose gates closed, and check that the function is the same."""
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
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        start_model=folder_of("start_model"),
        model=folder_of("model"),
    shell:
        "python -m heads pruned --start-model {params.start_model:q}"
        " --gates {input.gates:q} --model {params.model:q} --heads {output.heads:q}"
        " > {log:q} 2>&1"


rule scratch:
    """Train the heads that pruning left from a fresh initialisation (Voita et al., Table 2)."""
    input:
        settings="results/{experiment}/settings/scratch.yaml",
        data=TRAINING_DATA,
        references=corpus_file("dev.target.txt"),
        unpruned_shape=rules.baseline.output.shape,
        # The table and not the pruned model: only which heads are left matters here.
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
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=1440,
        processes=1,
    params:
        data=lambda wildcards, input: str(Path(input.data[0]).parent),
        seed=lambda wildcards: wildcards.seed,
        unpruned=folder_of("unpruned_shape"),
        model=folder_of("model"),
    shell:
        "python -m heads scratch --settings {input.settings:q} --data {params.data:q}"
        " --references {input.references:q} --seed {params.seed:q} --threads {threads}"
        " --processes {resources.processes}"
        " --unpruned {params.unpruned:q} --heads {input.heads:q}"
        " --model {params.model:q} --history {output.history:q} > {log:q} 2>&1"


rule penalty_gates:
    """Train with gates and their price from a fresh initialisation on (Voita et al., footnote 8)."""
    input:
        settings="results/{experiment}/settings/penalty_gates.yaml",
        data=TRAINING_DATA,
        references=corpus_file("dev.target.txt"),
        unpruned_shape=rules.baseline.output.shape,
    output:
        model=f"{PENALTY_GATES}/model.safetensors",
        shape=f"{PENALTY_GATES}/model.json",
        history=f"{PENALTY_GATES}/train.jsonl",
        heads=f"{PENALTY_GATES}/heads.tsv",
        closing=f"{PENALTY_GATES}/gates.jsonl",
    log:
        f"{PENALTY_GATES}/log/penalty_gates.txt",
    benchmark:
        f"{PENALTY_GATES}/bench/penalty_gates.tsv"
    cache: CACHED
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=1440,
        processes=1,
    params:
        data=lambda wildcards, input: str(Path(input.data[0]).parent),
        seed=lambda wildcards: wildcards.seed,
        scope=lambda wildcards: wildcards.scope,
        target=lambda wildcards: wildcards.target,
        unpruned=folder_of("unpruned_shape"),
        model=folder_of("model"),
    shell:
        "python -m heads penalty_gates --settings {input.settings:q} --data {params.data:q}"
        " --references {input.references:q} --seed {params.seed:q} --threads {threads}"
        " --processes {resources.processes} --unpruned {params.unpruned:q}"
        " --scope {params.scope:q} --target {params.target:q}"
        " --model {params.model:q} --history {output.history:q}"
        " --heads {output.heads:q} --gates-log {output.closing:q} > {log:q} 2>&1"


use rule pruned as penalty_scratch with:
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

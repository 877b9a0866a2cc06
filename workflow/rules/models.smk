# The kinds of trained models: baseline, gates, pruned, scratch, and pruned from scratch. Each run has one folder.
# Wildcards reach the command through params, since the cache between workflows knows no wildcards.

# The inputs of every training; the command gets the folder of the subwords.
TRAINING_DATA = {
    "data": [f"{BPE}/{split}.{side}.safetensors" for split in ("train", "dev") for side in names.SIDES],
    "target_bpe": f"{BPE}/target.model",
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
        mem_mb=growing(32000),
        runtime=growing(2880),
        processes=1,
    params:
        stage="baseline",
        settings=settings_of("baseline"),
        data=subpath(input.target_bpe, parent=True),
        seed="{seed}",
        model=subpath(output.model, parent=True),
    shell:
        "python -m heads {params.stage:q} --settings {params.settings:q} --data {params.data:q} --references {input.references:q}"
        " --seed {params.seed:q} --model {params.model:q} --history {output.history:q} --checkpoints {output.checkpoints:q}"
        " --threads {threads} --processes {resources.processes} > {log:q} 2>&1"


use rule baseline as imported with:
    """Use an external model as the unpruned one, as it is or fine-tuned on the corpus."""
    input:
        **TRAINING_DATA,
        pretrained=lambda wildcards: PLAN.pretrained_files(wildcards.experiment),
    log:
        f"{BASELINE}/log/imported.txt",
    benchmark:
        f"{BASELINE}/bench/imported.tsv"
    wildcard_constraints:
        experiment=IMPORTED,
    cache: False
    params:
        stage="imported",
        settings=settings_of("imported"),


rule gates:
    """Fine-tune the baseline with hard-concrete gates on one scope of heads or hidden units (Voita et al., sec. 6)."""
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
    cache: CACHED
    priority: 1
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(32000),
        runtime=growing(2880),
        processes=1,
    params:
        settings=settings_of("gates"),
        data=subpath(input.target_bpe, parent=True),
        seed="{seed}",
        start=subpath(input.start_model, parent=True),
        scope="{scope}",
        target="{target}",
        model=subpath(output.model, parent=True),
    shell:
        "python -m heads gates --settings {params.settings:q} --data {params.data:q} --references {input.references:q}"
        " --seed {params.seed:q} --start-model {params.start:q} --scope {params.scope:q} --target {params.target:q}"
        " --model {params.model:q} --history {output.history:q} --heads {output.heads:q} --gates-log {output.gates_log:q}"
        " --threads {threads} --processes {resources.processes} > {log:q} 2>&1"


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
        mem_mb=growing(8000),
        runtime=growing(20),
    params:
        start=subpath(input.start_model, parent=True),
        model=subpath(output.model, parent=True),
    shell:
        "python -m heads pruned --start-model {params.start:q} --gates {input.gates:q} --model {params.model:q}"
        " --heads {output.heads:q} > {log:q} 2>&1"


rule scratch:
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
    wildcard_constraints:
        scope=SCOPES_OF_HEADS,
    cache: CACHED
    priority: 1
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(32000),
        runtime=growing(2880),
        processes=1,
    params:
        settings=settings_of("scratch"),
        data=subpath(input.target_bpe, parent=True),
        seed="{seed}",
        unpruned=subpath(input.unpruned, parent=True),
        model=subpath(output.model, parent=True),
    shell:
        "python -m heads scratch --settings {params.settings:q} --data {params.data:q} --references {input.references:q}"
        " --seed {params.seed:q} --unpruned {params.unpruned:q} --heads {input.heads:q}"
        " --model {params.model:q} --history {output.history:q}"
        " --threads {threads} --processes {resources.processes} > {log:q} 2>&1"


rule gates_from_scratch:
    """Train a model from scratch with gates and their penalty (Voita et al., footnote 8)."""
    input:
        **TRAINING_DATA,
        unpruned=fitting(rules.baseline.output.shape),
    output:
        model=f"{GATES_FROM_SCRATCH}/model.safetensors",
        shape=f"{GATES_FROM_SCRATCH}/model.json",
        history=f"{GATES_FROM_SCRATCH}/train.jsonl",
        heads=f"{GATES_FROM_SCRATCH}/heads.tsv",
        gates_log=f"{GATES_FROM_SCRATCH}/gates.jsonl",
    log:
        f"{GATES_FROM_SCRATCH}/log/gates_from_scratch.txt",
    benchmark:
        f"{GATES_FROM_SCRATCH}/bench/gates_from_scratch.tsv"
    wildcard_constraints:
        scope=SCOPES_OF_HEADS,
    cache: CACHED
    priority: 1
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(32000),
        runtime=growing(2880),
        processes=1,
    params:
        settings=settings_of("gates_from_scratch"),
        data=subpath(input.target_bpe, parent=True),
        seed="{seed}",
        unpruned=subpath(input.unpruned, parent=True),
        scope="{scope}",
        target="{target}",
        model=subpath(output.model, parent=True),
    shell:
        "python -m heads gates_from_scratch --settings {params.settings:q} --data {params.data:q} --references {input.references:q}"
        " --seed {params.seed:q} --unpruned {params.unpruned:q} --scope {params.scope:q} --target {params.target:q}"
        " --model {params.model:q} --history {output.history:q} --heads {output.heads:q} --gates-log {output.gates_log:q}"
        " --threads {threads} --processes {resources.processes} > {log:q} 2>&1"


use rule pruned as pruned_from_scratch with:
    """Remove the heads whose gates closed in a training from scratch, with the same check."""
    input:
        start_model=rules.gates_from_scratch.output.model,
        start_shape=rules.gates_from_scratch.output.shape,
        gates=rules.gates_from_scratch.output.heads,
    output:
        model=f"{PRUNED_FROM_SCRATCH}/model.safetensors",
        shape=f"{PRUNED_FROM_SCRATCH}/model.json",
        heads=f"{PRUNED_FROM_SCRATCH}/heads.tsv",
    log:
        f"{PRUNED_FROM_SCRATCH}/log/pruned_from_scratch.txt",
    benchmark:
        f"{PRUNED_FROM_SCRATCH}/bench/pruned_from_scratch.tsv"
    wildcard_constraints:
        scope=SCOPES_OF_HEADS,
    cache: CACHED

# Heads chosen by gates and by other means, cut out of the baseline and trained on for equally many updates.


rule latency:
    """Time what a head of each kind of attention costs the unpruned model."""
    input:
        settings="results/{experiment}/settings/speed.yaml",
        model=rules.baseline.output.model,
        shape=rules.baseline.output.shape,
        source=f"{BPE}/test.source.safetensors",
    output:
        f"{BASELINE}/{criteria.LATENCY}",
    log:
        f"{BASELINE}/log/latency.txt",
    benchmark:
        f"{BASELINE}/bench/latency.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        model=folder_of("model"),
    shell:
        "python -m heads latency --settings {input.settings:q} --model {params.model:q}"
        " --source {input.source:q} --out {output:q} --threads {threads} > {log:q} 2>&1"


rule selection:
    """Which heads each method keeps of the unpruned model, for every budget."""
    input:
        settings="results/{experiment}/settings/selection.yaml",
        measures=lambda w: measures_of(all_choices(w), w),
        code=[f"{CODE}/pruning/{name}.py" for name in ("criteria", "selection")],
    output:
        f"{BASELINE}/selection.tsv",
    log:
        f"{BASELINE}/log/selection.txt",
    benchmark:
        f"{BASELINE}/bench/selection.tsv"
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=500,
        runtime=20,
    params:
        # Text, for Snakemake remembers it.
        targets=lambda wildcards: [str(choice) for choice in all_choices(wildcards)],
        baseline=lambda wildcards, input: Path(input.measures[0]).parent,
    shell:
        "python -m heads selection --settings {input.settings:q} --baseline {params.baseline:q}"
        " --targets {params.targets:q} --out {output:q} > {log:q} 2>&1"


rule masked:
    """BLEU of the unpruned model with the heads masked that each choice closes, without any update."""
    input:
        settings="results/{experiment}/settings/masked.yaml",
        model=rules.baseline.output.model,
        shape=rules.baseline.output.shape,
        selection=rules.selection.output,
        source=f"{BPE}/test.source.safetensors",
        references=corpus_file("test.target.txt"),
        target_bpe=f"{BPE}/target.model",
    output:
        f"{BASELINE}/masked.tsv",
    log:
        f"{BASELINE}/log/masked.txt",
    benchmark:
        f"{BASELINE}/bench/masked.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=720,
    params:
        model=folder_of("model"),
    shell:
        "python -m heads masked --settings {input.settings:q} --model {params.model:q}"
        " --source {input.source:q} --references {input.references:q} --target-bpe {input.target_bpe:q}"
        " --selection {input.selection:q} --out {output:q} --threads {threads} > {log:q} 2>&1"


rule chosen_heads:
    """The heads of one choice, apart from all others, so that one more choice retrains none."""
    input:
        settings="results/{experiment}/settings/selection.yaml",
        measures=lambda w: measures_of([Target.parse(w.choice)], w),
    output:
        f"{SELECTED}/heads.tsv",
    log:
        f"{SELECTED}/log/chosen_heads.txt",
    benchmark:
        f"{SELECTED}/bench/chosen_heads.tsv"
    wildcard_constraints:
        choice=CHOSEN,
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=500,
        runtime=20,
    params:
        # Text, for the cache writes it down as JSON.
        baseline=lambda wildcards, input: str(Path(input.measures[0]).parent),
    shell:
        "python -m heads selection --settings {input.settings:q} --baseline {params.baseline:q}"
        " --targets {wildcards.choice} --out {output:q} > {log:q} 2>&1"


rule selected:
    """Remove the heads that a choice closes from the baseline, and train on for as long as gates are trained."""
    input:
        settings="results/{experiment}/settings/selected.yaml",
        data=TRAINING_DATA,
        references=corpus_file("dev.target.txt"),
        start_model=rules.baseline.output.model,
        start_shape=rules.baseline.output.shape,
        heads=heads_to_keep,
    output:
        model=f"{SELECTED}/model.safetensors",
        shape=f"{SELECTED}/model.json",
        history=f"{SELECTED}/train.jsonl",
    log:
        f"{SELECTED}/log/selected.txt",
    benchmark:
        f"{SELECTED}/bench/selected.tsv"
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
        start_model=folder_of("start_model"),
        model=folder_of("model"),
    shell:
        "python -m heads selected --settings {input.settings:q} --data {params.data:q}"
        " --references {input.references:q} --seed {params.seed:q} --threads {threads}"
        " --processes {resources.processes}"
        " --start-model {params.start_model:q} --heads {input.heads:q}"
        " --model {params.model:q} --history {output.history:q} > {log:q} 2>&1"


rule compared:
    """Test what every fine-tuned model with fewer heads scores against the unpruned model."""
    input:
        settings="results/{experiment}/settings/compared.yaml",
        runs=lambda w: [
            f"{folder}/{name}"
            for folder in compared_with(w)
            for name in ("model.json", "bleu.json", "translations.txt")
        ],
        baseline=[f"{BASELINE}/{name}" for name in ("model.json", "bleu.json", "translations.txt")],
        references=corpus_file("test.target.txt"),
    output:
        f"{BASELINE}/compared.tsv",
    log:
        f"{BASELINE}/log/compared.txt",
    benchmark:
        f"{BASELINE}/bench/compared.tsv"
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=1000,
        runtime=60,
    params:
        baseline=lambda wildcards, input: Path(input.baseline[0]).parent,
        runs=compared_with,
    shell:
        "python -m heads compared --settings {input.settings:q} --baseline {params.baseline:q} --runs {params.runs:q}"
        " --references {input.references:q} --out {output:q} > {log:q} 2>&1"

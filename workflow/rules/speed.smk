# Speed (Michel et al., Table 4): pruned models against the unpruned one.
rule speed:
    """Time the unpruned model and all models pruned from it in one process (Michel et al., Table 4)."""
    input:
        models=lambda w: [f"{folder}/{name}" for folder in PLAN.timed_with(w.experiment, w.seed) for name in MODEL],
        baseline=rules.baseline.output.model,
        shape=rules.baseline.output.shape,
        source=f"{BPE}/test.source.safetensors",
        code=code_of("speed"),
    output:
        f"{BASELINE}/speed.tsv",
    log:
        f"{BASELINE}/log/speed.txt",
    benchmark:
        f"{BASELINE}/bench/speed.tsv"
    priority: FIRST
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        settings=settings_of("speed"),
        baseline=subpath(input.baseline, parent=True),
        runs=lambda w: PLAN.timed_with(w.experiment, w.seed),
    shell:
        "python -m heads speed --settings {params.settings:q} --baseline {params.baseline:q} --runs {params.runs:q}"
        " --source {input.source:q} --out {output:q} --threads {threads} > {log:q} 2>&1"

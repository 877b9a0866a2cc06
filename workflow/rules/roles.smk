# What heads do on sentences: roles of encoder heads, at the end and in the course of training, and attention maps.


rule roles:
    """Which encoder heads are positional, syntactic or look at rare words (Voita et al., sec. 5)."""
    input:
        **SCORED_MODEL,
        source_bpe=f"{BPE}/source.model",
        train_source=f"{BPE}/train.source.safetensors",
        trees=lambda w: list(PLAN.tree_files(w.experiment).values()),
        text=lambda w: PLAN.text_of_roles(w.experiment),
        code=code_of("roles"),
    output:
        out=f"{ANY_RUN}/roles.tsv",
        coverage=f"{ANY_RUN}/coverage.tsv",
        positions=f"{ANY_RUN}/positions.tsv",
    log:
        f"{ANY_RUN}/log/roles.txt",
    benchmark:
        f"{ANY_RUN}/bench/roles.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(60),
    params:
        settings=settings_of("roles"),
        model=subpath(input.model, parent=True),
        trees=lambda w: [f"{name}={path}" for name, path in PLAN.tree_files(w.experiment).items()],
    shell:
        "python -m heads roles --settings {params.settings:q} --model {params.model:q} --trees {params.trees:q} --text {input.text:q}"
        " --source-bpe {input.source_bpe:q} --train-source {input.train_source:q} --out {output.out:q}"
        " --coverage {output.coverage:q} --positions {output.positions:q} --threads {threads} > {log:q} 2>&1"


rule dynamics:
    """Confidence and roles of encoder heads at the checkpoints that the baseline kept."""
    input:
        **DEV_PAIRS,
        model=rules.baseline.output.model,
        shape=rules.baseline.output.shape,
        checkpoints=rules.baseline.output.checkpoints,
        source_bpe=f"{BPE}/source.model",
        train_source=f"{BPE}/train.source.safetensors",
        trees=lambda w: list(PLAN.tree_files(w.experiment).values()),
        text=lambda w: PLAN.text_of_roles(w.experiment),
        code=code_of("dynamics"),
    output:
        out=f"{BASELINE}/dynamics.tsv",
    log:
        f"{BASELINE}/log/dynamics.txt",
    benchmark:
        f"{BASELINE}/bench/dynamics.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        settings=settings_of("dynamics"),
        model=subpath(input.model, parent=True),
        trees=lambda w: [f"{name}={path}" for name, path in PLAN.tree_files(w.experiment).items()],
    shell:
        "python -m heads dynamics --settings {params.settings:q} --model {params.model:q} --trees {params.trees:q} --text {input.text:q}"
        " --source-bpe {input.source_bpe:q} --train-source {input.train_source:q} --source {input.source:q}"
        " --target {input.target:q} --checkpoints {input.checkpoints:q} --out {output.out:q} --threads {threads} > {log:q} 2>&1"


rule maps:
    """Attention maps of a few sentences that the model translates or labels."""
    input:
        **SCORED_MODEL,
        source_bpe=f"{BPE}/source.model",
        target_bpe=f"{BPE}/target.model",
        sentences=lambda w: PLAN.sentences_shown(w.experiment),
        labels=lambda w: PLAN.labels_shown(w.experiment),
        trees=lambda w: PLAN.trees_shown(w.experiment),
        code=code_of("maps"),
    output:
        out=f"{ANY_RUN}/maps.json",
    log:
        f"{ANY_RUN}/log/maps.txt",
    benchmark:
        f"{ANY_RUN}/bench/maps.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(10),
    params:
        settings=settings_of("maps"),
        model=subpath(input.model, parent=True),
    shell:
        "python -m heads maps --settings {params.settings:q} --model {params.model:q} --source-bpe {input.source_bpe:q}"
        " --target-bpe {input.target_bpe:q} --sentences {input.sentences:q} --labels {input.labels:q}"
        " --trees {input.trees:q}"
        " --out {output.out:q} --threads {threads} > {log:q} 2>&1"

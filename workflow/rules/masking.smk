# BLEU with heads masked, without any update (Michel et al.), on any scored model or at checkpoints of the baseline.


rule ablation:
    """BLEU with every head masked alone, and with every head left alone in its layer (Michel et al., sec. 3)."""
    input:
        **SCORED_MODEL,
        source=f"{BPE}/test.source.safetensors",
        references=corpus_file("test.target.txt"),
        target_bpe=f"{BPE}/target.model",
        dev_source=f"{BPE}/dev.source.safetensors",
        dev_references=corpus_file("dev.target.txt"),
        code=code_of("ablation"),
    output:
        masked=f"{ANY_RUN}/ablation.tsv",
        masked_dev=f"{ANY_RUN}/ablation.dev.tsv",
        alone=f"{ANY_RUN}/alone.tsv",
        alone_dev=f"{ANY_RUN}/alone.dev.tsv",
        layers=f"{ANY_RUN}/layers_to_one.tsv",
    log:
        f"{ANY_RUN}/log/ablation.txt",
    benchmark:
        f"{ANY_RUN}/bench/ablation.tsv"
    priority: FIRST
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(1440),
    params:
        settings=settings_of("ablation"),
        model=subpath(input.model, parent=True),
    shell:
        "python -m heads ablation --settings {params.settings:q} --model {params.model:q} --source {input.source:q}"
        " --references {input.references:q} --target-bpe {input.target_bpe:q}"
        " --dev-source {input.dev_source:q} --dev-references {input.dev_references:q} --masked {output.masked:q}"
        " --masked-dev {output.masked_dev:q} --alone {output.alone:q} --alone-dev {output.alone_dev:q}"
        " --layers {output.layers:q} --threads {threads} > {log:q} 2>&1"


rule ablation_out_of_domain:
    """BLEU on an out-of-domain test set with every head masked alone (Michel et al., Fig 2)."""
    input:
        **SCORED_MODEL,
        source=f"{BPE}/{names.OUT_OF_DOMAIN}.source.safetensors",
        references=corpus_file(f"{names.OUT_OF_DOMAIN}.target.txt"),
        target_bpe=f"{BPE}/target.model",
        code=code_of("ablation_out_of_domain"),
    output:
        masked=f"{ANY_RUN}/{names.OUT_OF_DOMAIN_FILE}",
    log:
        f"{ANY_RUN}/log/ablation_out_of_domain.txt",
    benchmark:
        f"{ANY_RUN}/bench/ablation_out_of_domain.tsv"
    priority: FIRST
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(1440),
    params:
        settings=settings_of("ablation"),
        model=subpath(input.model, parent=True),
    shell:
        "python -m heads ablation_out_of_domain --settings {params.settings:q} --model {params.model:q} --source {input.source:q}"
        " --references {input.references:q} --target-bpe {input.target_bpe:q} --masked {output.masked:q} --threads {threads} > {log:q} 2>&1"


rule masking_curve:
    """BLEU as more and more heads are masked, in several orders and by kind of attention (Michel et al., secs 4 and 5)."""
    input:
        **SCORED_MODEL,
        source=f"{BPE}/test.source.safetensors",
        references=corpus_file("test.target.txt"),
        target_bpe=f"{BPE}/target.model",
        importance=rules.importance.output.out,
        ablation_dev=rules.ablation.output.masked_dev,
        ablation_test=rules.ablation.output.masked,
        code=code_of("masking_curve"),
    output:
        out=f"{ANY_RUN}/masking_curve.tsv",
    log:
        f"{ANY_RUN}/log/masking_curve.txt",
    benchmark:
        f"{ANY_RUN}/bench/masking_curve.tsv"
    priority: FIRST
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(1440),
    params:
        settings=settings_of("masking_curve"),
        model=subpath(input.model, parent=True),
    shell:
        "python -m heads masking_curve --settings {params.settings:q} --model {params.model:q} --source {input.source:q}"
        " --references {input.references:q} --target-bpe {input.target_bpe:q}"
        " --importance {input.importance:q} --ablation-dev {input.ablation_dev:q} --ablation-test {input.ablation_test:q}"
        " --out {output.out:q} --threads {threads} > {log:q} 2>&1"


rule checkpoints:
    """The masking curve by importance at the checkpoints that the baseline kept (Michel et al., sec. 6)."""
    input:
        model=rules.baseline.output.model,
        shape=rules.baseline.output.shape,
        checkpoints=rules.baseline.output.checkpoints,
        source=f"{BPE}/test.source.safetensors",
        references=corpus_file("test.target.txt"),
        target_bpe=f"{BPE}/target.model",
        dev_source=f"{BPE}/dev.source.safetensors",
        dev_target=f"{BPE}/dev.target.safetensors",
        train_source=f"{BPE}/train.source.safetensors",
        train_target=f"{BPE}/train.target.safetensors",
        code=code_of("checkpoints"),
    output:
        out=f"{BASELINE}/checkpoints.tsv",
    log:
        f"{BASELINE}/log/checkpoints.txt",
    benchmark:
        f"{BASELINE}/bench/checkpoints.tsv"
    priority: FIRST
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(1440),
    params:
        settings=settings_of("checkpoints"),
        model=subpath(input.model, parent=True),
    shell:
        "python -m heads checkpoints --settings {params.settings:q} --model {params.model:q} --source {input.source:q}"
        " --references {input.references:q} --target-bpe {input.target_bpe:q}"
        " --dev-source {input.dev_source:q} --dev-target {input.dev_target:q} --checkpoints {input.checkpoints:q}"
        " --train-source {input.train_source:q} --train-target {input.train_target:q} --out {output.out:q} --threads {threads} > {log:q} 2>&1"

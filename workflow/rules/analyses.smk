# What is measured on any trained model: the wildcard {run} is a baseline, pruned or scratch run.


rule score:
    """Translate the test set by beam search and score it with sacrebleu."""
    input:
        settings="results/{experiment}/settings/score.yaml",
        model=f"{ANY_RUN}/model.safetensors",
        shape=f"{ANY_RUN}/model.json",
        source=f"{BPE}/test.source.safetensors",
        target_bpe=f"{BPE}/target.model",
        references=corpus_file("test.target.txt"),
    output:
        translations=f"{ANY_RUN}/translations.txt",
        bleu=f"{ANY_RUN}/bleu.json",
        statistics=f"{ANY_RUN}/bleu_statistics.tsv",
    log:
        f"{ANY_RUN}/log/score.txt",
    benchmark:
        f"{ANY_RUN}/bench/score.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=120,
    params:
        model=folder_of("model"),
    shell:
        "python -m heads score --settings {input.settings:q} --model {params.model:q}"
        " --source {input.source:q} --target-bpe {input.target_bpe:q} --references {input.references:q}"
        " --translations {output.translations:q} --bleu {output.bleu:q} --statistics {output.statistics:q}"
        " --threads {threads} > {log:q} 2>&1"


rule confidence:
    """Mean of the largest attention weight of every head (Voita et al., sec. 4)."""
    input:
        settings="results/{experiment}/settings/confidence.yaml",
        model=f"{ANY_RUN}/model.safetensors",
        shape=f"{ANY_RUN}/model.json",
        source=f"{BPE}/dev.source.safetensors",
        target=f"{BPE}/dev.target.safetensors",
        code=[f"{CODE}/{name}.py" for name in ("analysis/confidence", "analysis/attention_weights")],
    output:
        f"{ANY_RUN}/confidence.tsv",
    log:
        f"{ANY_RUN}/log/confidence.txt",
    benchmark:
        f"{ANY_RUN}/bench/confidence.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        model=folder_of("model"),
    shell:
        "python -m heads confidence --settings {input.settings:q} --model {params.model:q}"
        " --source {input.source:q} --target {input.target:q} --out {output:q} --threads {threads} > {log:q} 2>&1"


rule lrp:
    """Layer-wise relevance propagation of the top-1 logit to every head (Voita et al., sec. 4 and app. A)."""
    input:
        settings="results/{experiment}/settings/lrp.yaml",
        model=f"{ANY_RUN}/model.safetensors",
        shape=f"{ANY_RUN}/model.json",
        source=f"{BPE}/dev.source.safetensors",
        target=f"{BPE}/dev.target.safetensors",
    output:
        heads=f"{ANY_RUN}/lrp.tsv",
        conservation=f"{ANY_RUN}/lrp_conservation.tsv",
    log:
        f"{ANY_RUN}/log/lrp.txt",
    benchmark:
        f"{ANY_RUN}/bench/lrp.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=240,
    params:
        model=folder_of("model"),
    shell:
        "python -m heads lrp --settings {input.settings:q} --model {params.model:q}"
        " --source {input.source:q} --target {input.target:q} --out {output.heads:q} --conservation {output.conservation:q}"
        " --threads {threads} > {log:q} 2>&1"


rule roles:
    """Which encoder heads are positional, syntactic or look at rare words (Voita et al., sec. 5)."""
    input:
        settings="results/{experiment}/settings/roles.yaml",
        model=f"{ANY_RUN}/model.safetensors",
        shape=f"{ANY_RUN}/model.json",
        source_bpe=f"{BPE}/source.model",
        train_source=f"{BPE}/train.source.safetensors",
        trees=lambda w: list(tree_files(w).values()),
        code=[
            f"{CODE}/{name}.py"
            for name in ("analysis/roles", "base/bootstrap", "syntax/alignment", "analysis/attention_weights")
        ],
    output:
        roles=f"{ANY_RUN}/roles.tsv",
        alignment=f"{ANY_RUN}/alignment.tsv",
        positions=f"{ANY_RUN}/positions.tsv",
    log:
        f"{ANY_RUN}/log/roles.txt",
    benchmark:
        f"{ANY_RUN}/bench/roles.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=120,
    params:
        trees=lambda w: [f"{name}={path}" for name, path in tree_files(w).items()],
        model=folder_of("model"),
    shell:
        "python -m heads roles --settings {input.settings:q} --model {params.model:q}"
        " --source-bpe {input.source_bpe:q} --trees {params.trees:q} --train-source {input.train_source:q}"
        " --out {output.roles:q} --alignment {output.alignment:q} --positions {output.positions:q}"
        " --threads {threads} > {log:q} 2>&1"


rule maps:
    """Attention maps of a few parsed sentences, for looking at."""
    input:
        settings="results/{experiment}/settings/maps.yaml",
        model=f"{ANY_RUN}/model.safetensors",
        shape=f"{ANY_RUN}/model.json",
        source_bpe=f"{BPE}/source.model",
        trees=lambda w: next(iter(tree_files(w).values())),
        code=[
            f"{CODE}/{name}.py"
            for name in ("analysis/attention_maps", "syntax/alignment", "analysis/attention_weights")
        ],
    output:
        f"{ANY_RUN}/maps.json",
    log:
        f"{ANY_RUN}/log/maps.txt",
    benchmark:
        f"{ANY_RUN}/bench/maps.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        model=folder_of("model"),
    shell:
        "python -m heads maps --settings {input.settings:q} --model {params.model:q}"
        " --source-bpe {input.source_bpe:q} --trees {input.trees:q} --out {output:q} --threads {threads}"
        " > {log:q} 2>&1"


rule speed:
    """Time the unpruned model and all models pruned from it in one process (Michel et al., Table 4)."""
    input:
        settings="results/{experiment}/settings/speed.yaml",
        models=lambda w: [
            f"{folder}/{name}" for folder in timed_with(w) for name in ("model.safetensors", "model.json")
        ],
        baseline=[f"{BASELINE}/model.safetensors", f"{BASELINE}/model.json"],
        source=f"{BPE}/test.source.safetensors",
    output:
        f"{BASELINE}/speed.tsv",
    log:
        f"{BASELINE}/log/speed.txt",
    benchmark:
        f"{BASELINE}/bench/speed.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=240,
    params:
        baseline=lambda wildcards, input: Path(input.baseline[0]).parent,
        runs=lambda w: timed_with(w),
    shell:
        "python -m heads speed --settings {input.settings:q} --baseline {params.baseline:q} --runs {params.runs:q}"
        " --source {input.source:q} --out {output:q} --threads {threads} > {log:q} 2>&1"


rule importance:
    """How much the loss depends on every head, to first order (Michel et al., sec. 4.1)."""
    input:
        settings="results/{experiment}/settings/importance.yaml",
        model=f"{ANY_RUN}/model.safetensors",
        shape=f"{ANY_RUN}/model.json",
        source=f"{BPE}/dev.source.safetensors",
        target=f"{BPE}/dev.target.safetensors",
        code=f"{CODE}/analysis/importance.py",
    output:
        f"{ANY_RUN}/importance.tsv",
    log:
        f"{ANY_RUN}/log/importance.txt",
    benchmark:
        f"{ANY_RUN}/bench/importance.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        model=folder_of("model"),
    shell:
        "python -m heads importance --settings {input.settings:q} --model {params.model:q}"
        " --source {input.source:q} --target {input.target:q} --out {output:q} --threads {threads} > {log:q} 2>&1"


rule ablation:
    """BLEU with every head masked alone, and with every head left alone in its layer (Michel et al., sec. 3)."""
    input:
        settings="results/{experiment}/settings/ablation.yaml",
        model=f"{ANY_RUN}/model.safetensors",
        shape=f"{ANY_RUN}/model.json",
        source=f"{BPE}/test.source.safetensors",
        references=corpus_file("test.target.txt"),
        dev_source=f"{BPE}/dev.source.safetensors",
        dev_references=corpus_file("dev.target.txt"),
        target_bpe=f"{BPE}/target.model",
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
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=720,
    params:
        model=folder_of("model"),
    shell:
        "python -m heads ablation --settings {input.settings:q} --model {params.model:q}"
        " --source {input.source:q} --references {input.references:q} --target-bpe {input.target_bpe:q}"
        " --dev-source {input.dev_source:q} --dev-references {input.dev_references:q}"
        " --masked {output.masked:q} --masked-dev {output.masked_dev:q} --alone {output.alone:q}"
        " --alone-dev {output.alone_dev:q} --layers {output.layers:q} --threads {threads} > {log:q} 2>&1"


rule ablation_other:
    """BLEU on the test set of another domain with every head masked alone (Michel et al., Fig 2)."""
    input:
        settings="results/{experiment}/settings/ablation.yaml",
        model=f"{ANY_RUN}/model.safetensors",
        shape=f"{ANY_RUN}/model.json",
        source=f"{BPE}/{names.OTHER}.source.safetensors",
        references=corpus_file(f"{names.OTHER}.target.txt"),
        target_bpe=f"{BPE}/target.model",
    output:
        masked=f"{ANY_RUN}/{ABLATION_OTHER}",
    log:
        f"{ANY_RUN}/log/ablation_other.txt",
    benchmark:
        f"{ANY_RUN}/bench/ablation_other.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=720,
    params:
        model=folder_of("model"),
    shell:
        "python -m heads ablation_other --settings {input.settings:q} --model {params.model:q}"
        " --source {input.source:q} --references {input.references:q} --target-bpe {input.target_bpe:q}"
        " --masked {output.masked:q} --threads {threads} > {log:q} 2>&1"


rule masking_curve:
    """BLEU as more and more heads are masked, in several orders and by kind of attention (Michel et al., secs 4 and 5)."""
    input:
        settings="results/{experiment}/settings/masking_curve.yaml",
        model=f"{ANY_RUN}/model.safetensors",
        shape=f"{ANY_RUN}/model.json",
        source=f"{BPE}/test.source.safetensors",
        references=corpus_file("test.target.txt"),
        target_bpe=f"{BPE}/target.model",
        importance=f"{ANY_RUN}/importance.tsv",
        ablation_dev=f"{ANY_RUN}/ablation.dev.tsv",
        ablation_test=f"{ANY_RUN}/ablation.tsv",
        code=f"{CODE}/analysis/masking_curve.py",
    output:
        f"{ANY_RUN}/masking_curve.tsv",
    log:
        f"{ANY_RUN}/log/masking_curve.txt",
    benchmark:
        f"{ANY_RUN}/bench/masking_curve.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=720,
    params:
        model=folder_of("model"),
    shell:
        "python -m heads masking_curve --settings {input.settings:q} --model {params.model:q}"
        " --source {input.source:q} --references {input.references:q} --target-bpe {input.target_bpe:q}"
        " --importance {input.importance:q} --ablation-dev {input.ablation_dev:q}"
        " --ablation-test {input.ablation_test:q} --out {output:q} --threads {threads} > {log:q} 2>&1"


rule checkpoints:
    """The curve by importance at the checkpoints of training that the baseline kept (Michel et al., sec. 6)."""
    input:
        settings="results/{experiment}/settings/checkpoints.yaml",
        model=f"{BASELINE}/model.safetensors",
        shape=f"{BASELINE}/model.json",
        checkpoints=f"{BASELINE}/checkpoints",
        source=f"{BPE}/test.source.safetensors",
        references=corpus_file("test.target.txt"),
        dev_source=f"{BPE}/dev.source.safetensors",
        dev_target=f"{BPE}/dev.target.safetensors",
        train_source=f"{BPE}/train.source.safetensors",
        train_target=f"{BPE}/train.target.safetensors",
        target_bpe=f"{BPE}/target.model",
        code=[f"{CODE}/analysis/{name}.py" for name in ("masking_curve", "importance")],
    output:
        f"{BASELINE}/checkpoints.tsv",
    log:
        f"{BASELINE}/log/checkpoints.txt",
    benchmark:
        f"{BASELINE}/bench/checkpoints.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=720,
    params:
        model=folder_of("model"),
    shell:
        "python -m heads checkpoints --settings {input.settings:q} --model {params.model:q}"
        " --source {input.source:q} --references {input.references:q} --target-bpe {input.target_bpe:q}"
        " --dev-source {input.dev_source:q} --dev-target {input.dev_target:q} --checkpoints {input.checkpoints:q}"
        " --train-source {input.train_source:q} --train-target {input.train_target:q}"
        " --out {output:q} --threads {threads} > {log:q} 2>&1"

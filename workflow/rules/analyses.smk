# What is measured on any trained model: the wildcard {run} is a baseline, pruned or scratch run.


rule translate:
    """Translate the test set by beam search and score it with sacrebleu."""
    input:
        settings="results/{experiment}/settings/translate.yaml",
        model=f"{ANY_RUN}/model.safetensors",
        shape=f"{ANY_RUN}/model.json",
        source=f"{BPE}/test.source.safetensors",
        target_bpe=f"{BPE}/target.model",
        references=corpus_file("test.target.txt"),
    output:
        translations=f"{ANY_RUN}/translations.txt",
        bleu=f"{ANY_RUN}/bleu.json",
    log:
        f"{ANY_RUN}/log/translate.txt",
    benchmark:
        f"{ANY_RUN}/bench/translate.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=120,
    shell:
        "python -m heads translate --settings {input.settings:q} --model {input.model:q} --shape {input.shape:q}"
        " --source {input.source:q} --target-bpe {input.target_bpe:q} --references {input.references:q}"
        " --translations {output.translations:q} --bleu {output.bleu:q} --threads {threads} > {log:q} 2>&1"


rule confidence:
    """Mean of the largest attention weight of every head (Voita et al., sec. 4)."""
    input:
        settings="results/{experiment}/settings/confidence.yaml",
        model=f"{ANY_RUN}/model.safetensors",
        shape=f"{ANY_RUN}/model.json",
        source=f"{BPE}/dev.source.safetensors",
        target=f"{BPE}/dev.target.safetensors",
        code=[f"{CODE}/{name}.py" for name in ("confidence", "attention_rows")],
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
    shell:
        "python -m heads confidence --settings {input.settings:q} --model {input.model:q} --shape {input.shape:q}"
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
        f"{ANY_RUN}/lrp.tsv",
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
    shell:
        "python -m heads lrp --settings {input.settings:q} --model {input.model:q} --shape {input.shape:q}"
        " --source {input.source:q} --target {input.target:q} --out {output:q} --threads {threads} > {log:q} 2>&1"


rule roles:
    """Which encoder heads are positional, syntactic or look at rare words (Voita et al., sec. 5)."""
    input:
        settings="results/{experiment}/settings/roles.yaml",
        model=f"{ANY_RUN}/model.safetensors",
        shape=f"{ANY_RUN}/model.json",
        source_bpe=f"{BPE}/source.model",
        train_source=f"{BPE}/train.source.safetensors",
        trees=corpus_file("dev.conllu"),
        code=[f"{CODE}/{name}.py" for name in ("roles", "words", "attention_rows")],
    output:
        f"{ANY_RUN}/roles.tsv",
    log:
        f"{ANY_RUN}/log/roles.txt",
    benchmark:
        f"{ANY_RUN}/bench/roles.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=120,
    shell:
        "python -m heads roles --settings {input.settings:q} --model {input.model:q} --shape {input.shape:q}"
        " --source-bpe {input.source_bpe:q} --trees {input.trees:q} --train-source {input.train_source:q}"
        " --out {output:q} --threads {threads} > {log:q} 2>&1"


rule maps:
    """Attention maps of a few parsed sentences, for looking at."""
    input:
        settings="results/{experiment}/settings/maps.yaml",
        model=f"{ANY_RUN}/model.safetensors",
        shape=f"{ANY_RUN}/model.json",
        source_bpe=f"{BPE}/source.model",
        trees=corpus_file("dev.conllu"),
        code=[f"{CODE}/{name}.py" for name in ("maps", "words", "attention_rows")],
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
    shell:
        "python -m heads maps --settings {input.settings:q} --model {input.model:q} --shape {input.shape:q}"
        " --source-bpe {input.source_bpe:q} --trees {input.trees:q} --out {output:q} --threads {threads}"
        " > {log:q} 2>&1"

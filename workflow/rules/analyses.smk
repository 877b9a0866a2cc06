# Measurements of any trained model: the wildcard {run} is a baseline, pruned, scratch or selected run.
SCORED_MODEL = {"model": f"{ANY_RUN}/model.safetensors", "shape": f"{ANY_RUN}/model.json"}
DEV_PAIRS = {side: f"{BPE}/dev.{side}.safetensors" for side in names.SIDES}


rule score:
    """Translate the test set by beam search and score it with sacrebleu."""
    input:
        **scored_model("bleu.json"),
        source=f"{BPE}/test.source.safetensors",
        text=corpus_file("test.source.txt"),
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
        mem_mb=growing(8000),
        runtime=growing(120),
    params:
        settings=settings_of("score"),
        model=subpath(input.model, parent=True),
        against=lambda w: DISTILLATIONS.against(PLAN.experiments[w.experiment]),
    shell:
        "python -m heads score --settings {params.settings:q} --model {params.model:q} --source {input.source:q}"
        " --text {input.text:q} --target-bpe {input.target_bpe:q} --references {input.references:q}"
        " --translations {output.translations:q} --bleu {output.bleu:q} --statistics {output.statistics:q}"
        " --against {params.against:q} --threads {threads} > {log:q} 2>&1"


rule classified:
    """Predict the label of every test example; accuracy and Matthews' correlation."""
    input:
        **scored_model("accuracy.json"),
        source=f"{BPE}/test.source.safetensors",
        references=corpus_file("test.target.txt"),
        target_bpe=f"{BPE}/target.model",
        code=code_of("classified"),
    output:
        predictions=f"{ANY_RUN}/predictions.txt",
        accuracy=f"{ANY_RUN}/accuracy.json",
    log:
        f"{ANY_RUN}/log/classified.txt",
    benchmark:
        f"{ANY_RUN}/bench/classified.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(30),
    params:
        settings=settings_of("classified"),
        model=subpath(input.model, parent=True),
    shell:
        "python -m heads classified --settings {params.settings:q} --model {params.model:q} --source {input.source:q}"
        " --references {input.references:q} --target-bpe {input.target_bpe:q}"
        " --predictions {output.predictions:q} --accuracy {output.accuracy:q} --threads {threads} > {log:q} 2>&1"


rule confidence:
    """Mean of the largest attention weight of every head (Voita et al., sec. 4)."""
    input:
        **SCORED_MODEL,
        **DEV_PAIRS,
        code=code_of("confidence"),
    output:
        out=f"{ANY_RUN}/confidence.tsv",
    log:
        f"{ANY_RUN}/log/confidence.txt",
    benchmark:
        f"{ANY_RUN}/bench/confidence.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(30),
    params:
        stage="confidence",
        settings=settings_of("confidence"),
        model=subpath(input.model, parent=True),
    shell:
        "python -m heads {params.stage:q} --settings {params.settings:q} --model {params.model:q} --source {input.source:q}"
        " --target {input.target:q} --out {output.out:q} --threads {threads} > {log:q} 2>&1"


use rule confidence as importance with:
    """How much the loss depends on every head, to first order (Michel et al., sec. 4.1)."""
    input:
        **SCORED_MODEL,
        **DEV_PAIRS,
        code=code_of("importance"),
    output:
        out=f"{ANY_RUN}/importance.tsv",
    log:
        f"{ANY_RUN}/log/importance.txt",
    benchmark:
        f"{ANY_RUN}/bench/importance.tsv"
    resources:
        mem_mb=growing(16000),
        runtime=growing(60),
    params:
        stage="importance",
        settings=settings_of("importance"),


use rule confidence as causal with:
    """Which heads help, interfere or do neither, by soft gates on frozen weights (Nam et al. 2025)."""
    input:
        **scored_model(names.CAUSAL_FILE),
        **DEV_PAIRS,
        code=code_of("causal"),
    output:
        out=f"{ANY_RUN}/{names.CAUSAL_FILE}",
    log:
        f"{ANY_RUN}/log/causal.txt",
    benchmark:
        f"{ANY_RUN}/bench/causal.tsv"
    resources:
        mem_mb=growing(16000),
        runtime=growing(60),
    params:
        stage="causal",
        settings=settings_of("causal"),


rule lrp:
    """Layer-wise relevance propagation of the top-1 logit to every head (Voita et al., sec. 4 and app. A)."""
    input:
        **SCORED_MODEL,
        **DEV_PAIRS,
        code=code_of("lrp"),
    output:
        out=f"{ANY_RUN}/lrp.tsv",
        conservation=f"{ANY_RUN}/lrp_conservation.tsv",
    log:
        f"{ANY_RUN}/log/lrp.txt",
    benchmark:
        f"{ANY_RUN}/bench/lrp.tsv"
    priority: FIRST
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(16000),
        runtime=growing(240),
    params:
        settings=settings_of("lrp"),
        model=subpath(input.model, parent=True),
    shell:
        "python -m heads lrp --settings {params.settings:q} --model {params.model:q} --source {input.source:q}"
        " --target {input.target:q} --out {output.out:q} --conservation {output.conservation:q} --threads {threads} > {log:q} 2>&1"

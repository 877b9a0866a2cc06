# Measurements of any trained model: the wildcard {run} is a baseline, pruned, scratch or selected run.
SCORED_MODEL = {"model": f"{ANY_RUN}/model.safetensors", "shape": f"{ANY_RUN}/model.json"}


rule score:
    """Translate the test set by beam search and score it with sacrebleu."""
    input:
        **SCORED_MODEL,
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
        mem_mb=2000,
        runtime=120,
    params:
        settings=settings_of("score"),
        stage="score",
        own=lambda wildcards, input, output: [
            *flags("model", "source", "text", "target_bpe", "references", "translations", "bleu", "statistics")(
                wildcards, input, output
            ),
            *DISTILLATIONS.against_flags(PLAN.experiments[wildcards.experiment]),
        ],
    shell:
        "python -m heads {params.stage:q} --settings {params.settings:q} {params.own:q} --threads {threads}"
        " > {log:q} 2>&1"


use rule score as classified with:
    """Predict the label of every test example; accuracy and Matthews' correlation."""
    input:
        **SCORED_MODEL,
        source=f"{BPE}/test.source.safetensors",
        references=corpus_file("test.target.txt"),
        target_bpe=f"{BPE}/target.model",
    output:
        predictions=f"{ANY_RUN}/predictions.txt",
        accuracy=f"{ANY_RUN}/accuracy.json",
    log:
        f"{ANY_RUN}/log/classified.txt",
    benchmark:
        f"{ANY_RUN}/bench/classified.tsv"
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        settings=settings_of("classified"),
        stage="classified",
        own=flags("model", "source", "references", "target_bpe", "predictions", "accuracy"),


use rule score as confidence with:
    """Mean of the largest attention weight of every head (Voita et al., sec. 4)."""
    input:
        **SCORED_MODEL,
        source=f"{BPE}/dev.source.safetensors",
        target=f"{BPE}/dev.target.safetensors",
        code=code_of("confidence"),
    output:
        out=f"{ANY_RUN}/confidence.tsv",
    log:
        f"{ANY_RUN}/log/confidence.txt",
    benchmark:
        f"{ANY_RUN}/bench/confidence.tsv"
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        settings=settings_of("confidence"),
        stage="confidence",
        own=flags("model", "source", "target", "out"),


use rule score as lrp with:
    """Layer-wise relevance propagation of the top-1 logit to every head (Voita et al., sec. 4 and app. A)."""
    input:
        **SCORED_MODEL,
        source=f"{BPE}/dev.source.safetensors",
        target=f"{BPE}/dev.target.safetensors",
    output:
        out=f"{ANY_RUN}/lrp.tsv",
        conservation=f"{ANY_RUN}/lrp_conservation.tsv",
    log:
        f"{ANY_RUN}/log/lrp.txt",
    benchmark:
        f"{ANY_RUN}/bench/lrp.tsv"
    priority: FIRST
    resources:
        mem_mb=4000,
        runtime=240,
    params:
        settings=settings_of("lrp"),
        stage="lrp",
        own=flags("model", "source", "target", "out", "conservation"),


use rule confidence as importance with:
    """How much the loss depends on every head, to first order (Michel et al., sec. 4.1)."""
    input:
        **SCORED_MODEL,
        source=f"{BPE}/dev.source.safetensors",
        target=f"{BPE}/dev.target.safetensors",
        code=code_of("importance"),
    output:
        out=f"{ANY_RUN}/importance.tsv",
    log:
        f"{ANY_RUN}/log/importance.txt",
    benchmark:
        f"{ANY_RUN}/bench/importance.tsv"
    params:
        settings=settings_of("importance"),
        stage="importance",


use rule confidence as causal with:
    """Which heads help, interfere or do neither, by soft gates on frozen weights (Nam et al. 2025)."""
    input:
        **SCORED_MODEL,
        source=f"{BPE}/dev.source.safetensors",
        target=f"{BPE}/dev.target.safetensors",
        code=code_of("causal"),
    output:
        out=f"{ANY_RUN}/causal.tsv",
    log:
        f"{ANY_RUN}/log/causal.txt",
    benchmark:
        f"{ANY_RUN}/bench/causal.tsv"
    params:
        settings=settings_of("causal"),
        stage="causal",


rule roles:
    """Which encoder heads are positional, syntactic or look at rare words (Voita et al., sec. 5)."""
    input:
        **SCORED_MODEL,
        source_bpe=f"{BPE}/source.model",
        train_source=f"{BPE}/train.source.safetensors",
        trees=lambda w: list(PLAN.tree_files(w.experiment).values()),
        code=code_of("roles"),
    output:
        out=f"{ANY_RUN}/roles.tsv",
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
        settings=settings_of("roles"),
        stage="roles",
        trees=lambda w: [f"{name}={path}" for name, path in PLAN.tree_files(w.experiment).items()],
        own=flags("model", "source_bpe", "train_source", "out", "alignment", "positions"),
    shell:
        "python -m heads {params.stage:q} --settings {params.settings:q} --trees {params.trees:q} {params.own:q}"
        " --threads {threads} > {log:q} 2>&1"


use rule roles as dynamics with:
    """Confidence and roles of encoder heads at the checkpoints that the baseline kept."""
    input:
        model=rules.baseline.output.model,
        shape=rules.baseline.output.shape,
        checkpoints=rules.baseline.output.checkpoints,
        source_bpe=f"{BPE}/source.model",
        train_source=f"{BPE}/train.source.safetensors",
        source=f"{BPE}/dev.source.safetensors",
        target=f"{BPE}/dev.target.safetensors",
        trees=lambda w: list(PLAN.tree_files(w.experiment).values()),
        code=code_of("dynamics"),
    output:
        out=f"{BASELINE}/dynamics.tsv",
    log:
        f"{BASELINE}/log/dynamics.txt",
    benchmark:
        f"{BASELINE}/bench/dynamics.tsv"
    params:
        settings=settings_of("dynamics"),
        stage="dynamics",
        trees=lambda w: [f"{name}={path}" for name, path in PLAN.tree_files(w.experiment).items()],
        own=flags("model", "source_bpe", "train_source", "source", "target", "checkpoints", "out"),


use rule score as maps with:
    """Attention maps of a few sentences that the model translates or labels."""
    input:
        **SCORED_MODEL,
        source_bpe=f"{BPE}/source.model",
        target_bpe=f"{BPE}/target.model",
        sentences=lambda w: sentences_shown(PLAN, w.experiment),
        labels=lambda w: labels_shown(PLAN, w.experiment),
        trees=lambda w: trees_shown(PLAN, w.experiment),
        code=code_of("maps"),
    output:
        out=f"{ANY_RUN}/maps.json",
    log:
        f"{ANY_RUN}/log/maps.txt",
    benchmark:
        f"{ANY_RUN}/bench/maps.tsv"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        settings=settings_of("maps"),
        stage="maps",
        own=flags("model", "source_bpe", "target_bpe", "sentences", "labels", "trees", "out"),

# BLEU with heads masked, without any update (Michel et al.), on any scored model or at checkpoints of the baseline.
from heads.config.plan import OUT_OF_DOMAIN_FILE


use rule score as ablation with:
    """BLEU with every head masked alone, and with every head left alone in its layer (Michel et al., sec. 3)."""
    input:
        **SCORED_MODEL,
        source=f"{BPE}/test.source.safetensors",
        references=corpus_file("test.target.txt"),
        target_bpe=f"{BPE}/target.model",
        dev_source=f"{BPE}/dev.source.safetensors",
        dev_references=corpus_file("dev.target.txt"),
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
    resources:
        mem_mb=2000,
        runtime=720,
    params:
        settings=settings_of("ablation"),
        stage="ablation",
        own=flags(
            "model",
            "source",
            "references",
            "target_bpe",
            "dev_source",
            "dev_references",
            "masked",
            "masked_dev",
            "alone",
            "alone_dev",
            "layers",
        ),


use rule ablation as ablation_out_of_domain with:
    """BLEU on an out-of-domain test set with every head masked alone (Michel et al., Fig 2)."""
    input:
        **SCORED_MODEL,
        source=f"{BPE}/{names.OUT_OF_DOMAIN}.source.safetensors",
        references=corpus_file(f"{names.OUT_OF_DOMAIN}.target.txt"),
        target_bpe=f"{BPE}/target.model",
    output:
        masked=f"{ANY_RUN}/{OUT_OF_DOMAIN_FILE}",
    log:
        f"{ANY_RUN}/log/ablation_out_of_domain.txt",
    benchmark:
        f"{ANY_RUN}/bench/ablation_out_of_domain.tsv"
    params:
        settings=settings_of("ablation"),
        stage="ablation_out_of_domain",
        own=flags("model", "source", "references", "target_bpe", "masked"),


use rule ablation as masking_curve with:
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
    params:
        settings=settings_of("masking_curve"),
        stage="masking_curve",
        own=flags("model", "source", "references", "target_bpe", "importance", "ablation_dev", "ablation_test", "out"),


use rule ablation as checkpoints with:
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
    params:
        settings=settings_of("checkpoints"),
        stage="checkpoints",
        own=flags(
            "model",
            "source",
            "references",
            "target_bpe",
            "dev_source",
            "dev_target",
            "checkpoints",
            "train_source",
            "train_target",
            "out",
        ),

# What cross-attention heads look at: how well they align words, and which target token's source they look at.


rule alignment_heads:
    """How well cross-attention heads agree with a word alignment (error rate of Och and Ney 2003)."""
    input:
        **scored_model(names.ALIGNMENT_FILE),
        source_bpe=f"{BPE}/source.model",
        target_bpe=f"{BPE}/target.model",
        source=corpus_file("dev.source.txt"),
        target=corpus_file("dev.target.txt"),
        source_words=corpus_file("dev.source.words.txt"),
        target_words=corpus_file("dev.target.words.txt"),
        links=lambda w: PLAN.alignment_of(w.experiment),
        code=code_of("alignment_heads"),
    output:
        out=f"{ANY_RUN}/{names.ALIGNMENT_FILE}",
    log:
        f"{ANY_RUN}/log/alignment_heads.txt",
    benchmark:
        f"{ANY_RUN}/bench/alignment_heads.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(30),
    params:
        settings=settings_of("alignment_heads"),
        model=subpath(input.model, parent=True),
    shell:
        "python -m heads alignment_heads --settings {params.settings:q} --model {params.model:q} --source-bpe {input.source_bpe:q}"
        " --target-bpe {input.target_bpe:q} --source {input.source:q} --target {input.target:q}"
        " --source-words {input.source_words:q} --target-words {input.target_words:q} --links {input.links:q}"
        " --out {output.out:q} --threads {threads} > {log:q} 2>&1"


rule cross_attention_roles:
    """Which target token's source cross-attention heads look at: the one being written, the last or the next."""
    input:
        **scored_model(names.CROSS_ATTENTION_FILE),
        source_bpe=f"{BPE}/source.model",
        target_bpe=f"{BPE}/target.model",
        source=corpus_file("dev.source.txt"),
        target=corpus_file("dev.target.txt"),
        source_words=lambda w: PLAN.if_aligned(w.experiment, "source.words"),
        target_words=lambda w: PLAN.if_aligned(w.experiment, "target.words"),
        links=lambda w: PLAN.if_aligned(w.experiment, "alignment"),
        code=code_of("cross_attention_roles"),
    output:
        out=f"{ANY_RUN}/{names.CROSS_ATTENTION_FILE}",
    log:
        f"{ANY_RUN}/log/cross_attention_roles.txt",
    benchmark:
        f"{ANY_RUN}/bench/cross_attention_roles.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(30),
    params:
        settings=settings_of("alignment_heads"),
        model=subpath(input.model, parent=True),
    shell:
        "python -m heads cross_attention_roles --settings {params.settings:q} --model {params.model:q} --source-bpe {input.source_bpe:q}"
        " --target-bpe {input.target_bpe:q} --source {input.source:q} --target {input.target:q}"
        " --source-words {input.source_words:q} --target-words {input.target_words:q} --links {input.links:q}"
        " --out {output.out:q} --threads {threads} > {log:q} 2>&1"

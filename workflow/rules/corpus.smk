# From raw text to clean, split text: the embedded grammar, local files, downloads and sacrebleu's test sets.
include: "cache.smk"


CORPUS = "results/corpora/{corpus}"


rule fetch:
    """Download one file, resume a broken download, and check length and checksum."""
    output:
        "results/downloads/{file}",
    log:
        "results/downloads/log/{file}.txt",
    benchmark:
        "results/downloads/bench/{file}.tsv"
    wildcard_constraints:
        file="|".join(map(re.escape, PLAN.downloads)) or "none",
    retries: 2
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(720),
    params:
        url=lookup(dpath="{file}", within=PLAN.downloads),
        sha256=lookup(dpath="{file}", within=PLAN.checksums, default=""),
    shell:
        "python -m heads fetch --url {params.url:q} --out {output:q} --sha256 {params.sha256:q} > {log:q} 2>&1"


rule corpus:
    """Clean and split the text of one corpus, and count what each filter removed."""
    input:
        files=there(lambda w: PLAN.files_of(w.corpus), f"{CORPUS}/train.source.txt"),
    output:
        # Each has its own name, by which the cache knows it.
        **{f"{split}_{side}": f"{CORPUS}/{split}.{side}.txt" for split in names.SPLITS for side in names.SIDES},
        roles=f"{CORPUS}/{names.ROLES}.source.txt",
        filters=f"{CORPUS}/filters.tsv",
    log:
        f"{CORPUS}/log/corpus.txt",
    benchmark:
        f"{CORPUS}/bench/corpus.tsv"
    cache: CACHED
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        settings=lambda w: written(PLAN.corpus_entry(w.corpus)),
        folder=CORPUS,
    shell:
        "python -m heads corpus --settings {params.settings:q} --downloads results/downloads"
        " --out-folder {params.folder:q} --threads {threads} > {log:q} 2>&1"


rule out_of_domain:
    """The out-of-domain test set of a corpus, as plain text (Michel et al., Fig 2)."""
    input:
        files=there(lambda w: PLAN.out_of_domain_files(w.corpus), f"{CORPUS}/out_of_domain.source.txt"),
    output:
        source=f"{CORPUS}/{names.OUT_OF_DOMAIN}.source.txt",
        target=f"{CORPUS}/{names.OUT_OF_DOMAIN}.target.txt",
    log:
        f"{CORPUS}/log/out_of_domain.txt",
    benchmark:
        f"{CORPUS}/bench/out_of_domain.tsv"
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        settings=lambda w: written(PLAN.out_of_domain_entry(w.corpus)),
        folder=CORPUS,
    shell:
        "python -m heads out_of_domain --settings {params.settings:q} --downloads results/downloads"
        " --out-folder {params.folder:q} > {log:q} 2>&1"


rule trees:
    """Gold dependency trees of a split's source sentences (grammar), or the treebank that a corpus names.

    For a corpus in files, dev is the treebank that heads are measured on, or the grammar's instead; train is the one
    that a parser learns from.
    """
    input:
        text=f"{CORPUS}/{{split}}.source.txt",
        files=there(lambda w: PLAN.treebank_files(w.corpus, w.split), f"{CORPUS}/{{split}}.conllu"),
    output:
        f"{CORPUS}/{{split}}.conllu",
    log:
        f"{CORPUS}/log/trees.{{split}}.txt",
    benchmark:
        f"{CORPUS}/bench/trees.{{split}}.tsv"
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        settings=lambda w: written(PLAN.treebank_entry(w.corpus, w.split)),
    shell:
        "python -m heads trees --settings {params.settings:q} --split {wildcards.split}"
        " --downloads results/downloads --out {output:q} > {log:q} 2>&1"


rule alignment:
    """Word alignment of a split: the grammar's, or an aligner's, checked."""
    input:
        **{side: f"{CORPUS}/{{split}}.{side}.txt" for side in names.SIDES},
        files=there(lambda w: PLAN.alignment_files(w.corpus, w.split), f"{CORPUS}/{{split}}.alignment.txt"),
    output:
        **{f"{side}_words": f"{CORPUS}/{{split}}.{side}.words.txt" for side in names.SIDES},
        links=f"{CORPUS}/{{split}}.alignment.txt",
    log:
        f"{CORPUS}/log/alignment.{{split}}.txt",
    benchmark:
        f"{CORPUS}/bench/alignment.{{split}}.tsv"
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        settings=lambda w: written(PLAN.alignment_entry(w.corpus, w.split)),
    shell:
        "python -m heads alignment --settings {params.settings:q} --split {wildcards.split}"
        " --downloads results/downloads --source {input.source:q} --target {input.target:q} --links {output.links:q}"
        " --source-words {output.source_words:q} --target-words {output.target_words:q} > {log:q} 2>&1"

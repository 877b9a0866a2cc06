# Text to subwords: one vocabulary for each side, learnt or taken from an external model.


rule bpe:
    """Learn the byte-pair encoding of one side from the training text."""
    input:
        text=corpus_file("train.{side}.txt"),
    output:
        model=f"{BPE}/{{side}}.model",
        # Its checksum, written and read together with it.
        facts=f"{BPE}/{{side}}.json",
    log:
        f"{BPE}/log/bpe.{{side}}.txt",
    benchmark:
        f"{BPE}/bench/bpe.{{side}}.tsv"
    wildcard_constraints:
        experiment=TRAINED_HERE,
    cache: CACHED
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=growing(16000),
        runtime=growing(60),
    params:
        settings=settings_of("bpe"),
        side=lambda wildcards: wildcards.side,
    shell:
        "python -m heads bpe --settings {params.settings:q} --side {params.side} --text {input.text:q}"
        " --model {output.model:q} > {log:q} 2>&1"


rule imported_bpe:
    """Take both vocabularies of an external model, and the files that came with it."""
    input:
        pretrained=lambda wildcards: PLAN.pretrained_files(wildcards.experiment),
    output:
        models=[f"{BPE}/{side}.{ending}" for side in names.SIDES for ending in ("model", "json")],
        pretrained=directory(f"{BPE}/pretrained"),
    log:
        f"{BPE}/log/imported_bpe.txt",
    benchmark:
        f"{BPE}/bench/imported_bpe.tsv"
    wildcard_constraints:
        experiment=IMPORTED,
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(10),
    params:
        settings=settings_of("imported_bpe"),
        out_folder=lambda wildcards, output: str(Path(output.pretrained).parent),
    shell:
        "python -m heads imported_bpe --settings {params.settings:q} --out-folder {params.out_folder:q} > {log:q} 2>&1"


rule encode:
    """Encode one side of one split, or of the out-of-domain test set, into subword ids."""
    input:
        text=corpus_file("{split}.{side}.txt"),
        bpe=f"{BPE}/{{side}}.model",
    output:
        tokens=f"{BPE}/{{split}}.{{side}}.safetensors",
    log:
        f"{BPE}/log/encode.{{split}}.{{side}}.txt",
    benchmark:
        f"{BPE}/bench/encode.{{split}}.{{side}}.tsv"
    wildcard_constraints:
        split="|".join([*names.SPLITS, names.OUT_OF_DOMAIN]),
    cache: CACHED
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(30),
    params:
        # Only for the cache, which knows the text only by the job that made all texts of the corpus.
        text=lambda wildcards: f"{wildcards.split}.{wildcards.side}",
    shell:
        "python -m heads encode --text {input.text:q} --bpe {input.bpe:q} --tokens {output.tokens:q}"
        " --threads {threads} > {log:q} 2>&1"

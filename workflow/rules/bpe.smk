# Text to subwords: one vocabulary for each side, learnt or taken from an external model.


rule bpe:
    """Learn the byte-pair encoding of both sides from the training text."""
    input:
        **{side: corpus_file(f"train.{side}.txt") for side in names.SIDES},
    output:
        # With their checksums, written and read together with them. Each has its own name, by which the cache knows it.
        **{f"{side}_model": f"{BPE}/{side}.model" for side in names.SIDES},
        **{f"{side}_facts": f"{BPE}/{side}.json" for side in names.SIDES},
    log:
        f"{BPE}/log/bpe.txt",
    benchmark:
        f"{BPE}/bench/bpe.tsv"
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
    shell:
        "python -m heads bpe --settings {params.settings:q} --side source target"
        " --text {input.source:q} {input.target:q} --model {output.source_model:q} {output.target_model:q} > {log:q} 2>&1"


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
        out_folder=subpath(output.pretrained, parent=True),
    shell:
        "python -m heads imported_bpe --settings {params.settings:q} --out-folder {params.out_folder:q} > {log:q} 2>&1"


rule encode:
    """Encode both sides of one split, or of the out-of-domain test set, into subword ids."""
    input:
        **{side: corpus_file(f"{{split}}.{side}.txt") for side in names.SIDES},
        bpe=[f"{BPE}/{side}.model" for side in names.SIDES],
    output:
        **{side: f"{BPE}/{{split}}.{side}.safetensors" for side in names.SIDES},
    log:
        f"{BPE}/log/encode.{{split}}.txt",
    benchmark:
        f"{BPE}/bench/encode.{{split}}.tsv"
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
        split="{split}",
    shell:
        "python -m heads encode --text {input.source:q} {input.target:q} --bpe {input.bpe:q}"
        " --tokens {output.source:q} {output.target:q} --threads {threads} > {log:q} 2>&1"

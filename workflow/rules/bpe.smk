# Text to pieces: one vocabulary for each side.


rule bpe:
    """Learn the byte-pair encoding of one side from the training text."""
    input:
        settings="results/{experiment}/settings/bpe.yaml",
        text=corpus_file("train.{side}.txt"),
    output:
        model=f"{BPE}/{{side}}.model",
    log:
        f"{BPE}/log/bpe.{{side}}.txt",
    benchmark:
        f"{BPE}/bench/bpe.{{side}}.tsv"
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=2000,
        runtime=60,
    shell:
        "python -m heads bpe --settings {input.settings:q} --side {wildcards.side} --text {input.text:q}"
        " --model {output.model:q} > {log:q} 2>&1"


rule encode:
    """Encode one side of one split into piece ids."""
    input:
        text=corpus_file("{split}.{side}.txt"),
        bpe=f"{BPE}/{{side}}.model",
    output:
        tokens=f"{BPE}/{{split}}.{{side}}.safetensors",
    log:
        f"{BPE}/log/encode.{{split}}.{{side}}.txt",
    benchmark:
        f"{BPE}/bench/encode.{{split}}.{{side}}.tsv"
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=2000,
        runtime=60,
    shell:
        "python -m heads encode --text {input.text:q} --bpe {input.bpe:q} --tokens {output.tokens:q} > {log:q} 2>&1"

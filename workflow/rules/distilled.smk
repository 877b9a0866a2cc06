# Training text without a parallel corpus: an external model and its own translations.
DISTILLATIONS = in_sentences(PLAN.distillations)


rule import_model:
    """Import an external model, independently of any experiment."""
    input:
        lambda w: DISTILLATIONS.files_of_model(w.model),
    output:
        directory("results/models/{model}"),
    log:
        "results/models/log/{model}.txt",
    benchmark:
        "results/models/bench/{model}.tsv"
    wildcard_constraints:
        model=any_of(DISTILLATIONS.models),
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(10),
    params:
        pretrained=lookup(dpath="{model}", within=DISTILLATIONS.models),
    shell:
        "python -m heads import {params.pretrained:q} --output {output:q} > {log:q} 2>&1"


rule distilled:
    """Translate sentences with a model, to train on them (sequence-level knowledge distillation)."""
    input:
        model=lambda w: DISTILLATIONS.model_of(w.part),
        text=lambda w: DISTILLATIONS.text_of(w.part),
    output:
        source="results/distilled/{part}.source.txt",
        target="results/distilled/{part}.target.txt",
    log:
        "results/distilled/log/{part}.txt",
    benchmark:
        "results/distilled/bench/{part}.tsv"
    wildcard_constraints:
        part=any_of(DISTILLATIONS.parts),
    priority: 2
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(720),
    params:
        sentences=lambda w: DISTILLATIONS.parts[w.part].sentences,
        after=lambda w: DISTILLATIONS.parts[w.part].after,
        member=lambda w: DISTILLATIONS.member_of(w.part),
    shell:
        "python -m heads distilled --sentences {params.sentences:q} --after {params.after:q} --text {input.text:q}"
        " --member {params.member:q} --model {input.model:q} --source {output.source:q} --target {output.target:q} --threads {threads}"
        " > {log:q} 2>&1"

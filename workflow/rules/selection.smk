# Choose heads by gates and other methods, remove all others from the baseline, and fine-tune for equally many updates.
from heads.base.targets import CHOSEN


rule surgeon:
    """What each layer loses with fewer heads that make up for the others, and what they make up with."""
    input:
        **DEV_PAIRS,
        model=rules.baseline.output.model,
        shape=rules.baseline.output.shape,
        train_source=f"{BPE}/train.source.safetensors",
        train_target=f"{BPE}/train.target.safetensors",
        code=code_of("surgeon"),
    output:
        out=f"{BASELINE}/surgeon.tsv",
        grams=f"{BASELINE}/grams.safetensors",
    log:
        f"{BASELINE}/log/surgeon.txt",
    benchmark:
        f"{BASELINE}/bench/surgeon.tsv"
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(16000),
        runtime=growing(60),
    params:
        settings=settings_of("surgeon"),
        model=subpath(input.model, parent=True),
    shell:
        "python -m heads surgeon --settings {params.settings:q} --model {params.model:q} --source {input.source:q}"
        " --target {input.target:q} --train-source {input.train_source:q} --train-target {input.train_target:q}"
        " --out {output.out:q} --grams {output.grams:q} --threads {threads} > {log:q} 2>&1"


rule selection:
    """Which heads each method keeps of the unpruned model, for every budget."""
    input:
        measures=lambda w: PLAN.measures(w.experiment, w.seed, PLAN.choices(w.experiment)),
        code=code_of("selection"),
    output:
        out=f"{BASELINE}/selection.tsv",
    log:
        f"{BASELINE}/log/selection.txt",
    benchmark:
        f"{BASELINE}/bench/selection.tsv"
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        settings=settings_of("selection"),
        targets=lambda w: PLAN.choices(w.experiment),
        # Text, because the cache writes it as JSON.
        baseline=lambda wildcards, input: str(Path(input.measures[0]).parent),
    shell:
        "python -m heads selection --settings {params.settings:q} --baseline {params.baseline:q}"
        " --targets {params.targets:q} --out {output.out:q} > {log:q} 2>&1"


use rule selection as selection_of_choice with:
    """The heads of one choice in their own file, so that one more choice retrains no other."""
    input:
        measures=fitting(lambda w: PLAN.measures(w.experiment, w.seed, [w.choice])),
        code=rules.selection.input.code,
    output:
        out=f"{SELECTED}/heads.tsv",
    log:
        f"{SELECTED}/log/selection_of_choice.txt",
    benchmark:
        f"{SELECTED}/bench/selection_of_choice.tsv"
    wildcard_constraints:
        choice=CHOSEN,
    params:
        settings=settings_of("selection"),
        targets=["{choice}"],


rule masked:
    """BLEU of the unpruned model when the heads that each choice closes are masked, without any update."""
    input:
        model=rules.baseline.output.model,
        shape=rules.baseline.output.shape,
        selection=rules.selection.output.out,
        grams=lambda w: PLAN.grams(w.experiment, w.seed, PLAN.choices(w.experiment)),
        source=f"{BPE}/test.source.safetensors",
        references=corpus_file("test.target.txt"),
        target_bpe=f"{BPE}/target.model",
        code=code_of("masked"),
    output:
        out=f"{BASELINE}/masked.tsv",
    log:
        f"{BASELINE}/log/masked.txt",
    benchmark:
        f"{BASELINE}/bench/masked.tsv"
    priority: FIRST
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(1440),
    params:
        settings=settings_of("masked"),
        model=subpath(input.model, parent=True),
    shell:
        "python -m heads masked --settings {params.settings:q} --model {params.model:q} --source {input.source:q}"
        " --references {input.references:q} --target-bpe {input.target_bpe:q}"
        " --selection {input.selection:q} --grams {input.grams:q} --out {output.out:q} --threads {threads} > {log:q} 2>&1"


rule selected:
    """Remove the heads that a choice closes from the baseline, and fine-tune it for as long as gates are trained."""
    input:
        **TRAINING_DATA,
        start_model=rules.baseline.output.model,
        start_shape=rules.baseline.output.shape,
        heads=lambda w: PLAN.heads_to_keep(w.experiment, w.choice, w.seed),
        grams=lambda w: PLAN.grams(w.experiment, w.seed, [w.choice]),
    output:
        model=f"{SELECTED}/model.safetensors",
        shape=f"{SELECTED}/model.json",
        history=f"{SELECTED}/train.jsonl",
    log:
        f"{SELECTED}/log/selected.txt",
    benchmark:
        f"{SELECTED}/bench/selected.tsv"
    cache: CACHED
    priority: 1
    conda:
        "../../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(32000),
        runtime=growing(2880),
        processes=1,
    params:
        settings=settings_of("selected"),
        data=subpath(input.target_bpe, parent=True),
        seed="{seed}",
        start=subpath(input.start_model, parent=True),
        model=subpath(output.model, parent=True),
    shell:
        "python -m heads selected --settings {params.settings:q} --data {params.data:q} --references {input.references:q}"
        " --seed {params.seed:q} --start-model {params.start:q} --heads {input.heads:q}"
        " --grams {input.grams:q} --model {params.model:q} --history {output.history:q}"
        " --threads {threads} --processes {resources.processes} > {log:q} 2>&1"


rule compared:
    """Test whether each fine-tuned model with fewer heads scores differently from the unpruned model."""
    input:
        runs=lambda w: [
            f"{folder}/{name}"
            for folder in PLAN.compared_with(w.experiment, w.seed)
            for name in ("model.json", *PLAN.scored_files(w.experiment))
        ],
        baseline=rules.baseline.output.shape,
        scored=lambda w: [f"{BASELINE}/{name}".format(**w) for name in PLAN.scored_files(w.experiment)],
        references=corpus_file("test.target.txt"),
        code=code_of("compared"),
    output:
        f"{BASELINE}/compared.tsv",
    log:
        f"{BASELINE}/log/compared.txt",
    benchmark:
        f"{BASELINE}/bench/compared.tsv"
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        settings=settings_of("compared"),
        baseline=subpath(input.baseline, parent=True),
        runs=lambda w: PLAN.compared_with(w.experiment, w.seed),
    shell:
        "python -m heads compared --settings {params.settings:q} --baseline {params.baseline:q} --runs {params.runs:q}"
        " --references {input.references:q} --out {output:q} > {log:q} 2>&1"

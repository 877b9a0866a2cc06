# The settings of each stage as a small file of its own, so that a change reruns only what it was given.


rule settings:
    """The settings that one stage of an experiment is given, and nothing else."""
    output:
        "results/{experiment}/settings/{stage}.yaml",
    log:
        "results/{experiment}/settings/log/{stage}.txt",
    benchmark:
        "results/{experiment}/settings/bench/{stage}.tsv"
    resources:
        mem_mb=200,
        runtime=5,
    params:
        content=lambda wildcards: settings.stage_settings(EXPERIMENTS[wildcards.experiment], wildcards.stage),
    run:
        write_yaml(Path(output[0]), params.content)


rule corpus_settings:
    """The entry of one corpus in config.yaml."""
    output:
        "results/corpora/{corpus}/settings.yaml",
    log:
        "results/corpora/{corpus}/log/settings.txt",
    benchmark:
        "results/corpora/{corpus}/bench/settings.tsv"
    resources:
        mem_mb=200,
        runtime=5,
    params:
        content=lambda wildcards: corpus_entry(wildcards.corpus),
    run:
        write_yaml(Path(output[0]), params.content)


rule other_settings:
    """The entry of one corpus with the test set of another domain."""
    output:
        "results/corpora/{corpus}/other.yaml",
    log:
        "results/corpora/{corpus}/log/other_settings.txt",
    benchmark:
        "results/corpora/{corpus}/bench/other_settings.tsv"
    resources:
        mem_mb=200,
        runtime=5,
    params:
        content=lambda wildcards: other_entry(wildcards.corpus),
    run:
        write_yaml(Path(output[0]), params.content)


rule trees_settings:
    """The entry of one corpus with its treebank, which only the rule that reads it is given."""
    output:
        "results/corpora/{corpus}/trees.{split}.yaml",
    log:
        "results/corpora/{corpus}/log/trees_settings.{split}.txt",
    benchmark:
        "results/corpora/{corpus}/bench/trees_settings.{split}.tsv"
    resources:
        mem_mb=200,
        runtime=5,
    params:
        content=lambda wildcards: treebank_entry(wildcards.corpus, wildcards.split),
    run:
        write_yaml(Path(output[0]), params.content)

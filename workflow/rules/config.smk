# The settings of each stage as a small file of its own, so that a change reruns only what it was given. By a command, for
# Snakemake starts itself anew for each job with a `run` block.
import json

from heads.config.settings import stage_settings


rule settings:
    """The settings that one stage of an experiment is given, and nothing else."""
    output:
        f"{SETTINGS}/{{stage}}.yaml",
    log:
        f"{SETTINGS}/log/{{stage}}.txt",
    benchmark:
        f"{SETTINGS}/bench/{{stage}}.tsv"
    localrule: True
    conda:
        "../../envs/torch.yaml"
    resources:
        mem_mb=200,
        runtime=5,
    params:
        content=lambda w: json.dumps(stage_settings(PLAN.experiments[w.experiment], w.stage)),
    shell:
        "python -m heads settings --content {params.content:q} --out {output:q} > {log:q} 2>&1"


use rule settings as corpus_settings with:
    """The entry of one corpus in config.yaml."""
    output:
        "results/corpora/{corpus}/settings.yaml",
    log:
        "results/corpora/{corpus}/log/settings.txt",
    benchmark:
        "results/corpora/{corpus}/bench/settings.tsv"
    localrule: True
    params:
        content=lambda w: json.dumps(PLAN.corpus_entry(w.corpus)),


use rule settings as out_of_domain_settings with:
    """The entry of one corpus with the test set of another domain."""
    output:
        "results/corpora/{corpus}/out_of_domain.yaml",
    log:
        "results/corpora/{corpus}/log/out_of_domain_settings.txt",
    benchmark:
        "results/corpora/{corpus}/bench/out_of_domain_settings.tsv"
    localrule: True
    params:
        content=lambda w: json.dumps(PLAN.out_of_domain_entry(w.corpus)),


use rule settings as trees_settings with:
    """The entry of one corpus with its treebank, which only the rule that reads it is given."""
    output:
        "results/corpora/{corpus}/trees.{split}.yaml",
    log:
        "results/corpora/{corpus}/log/trees_settings.{split}.txt",
    benchmark:
        "results/corpora/{corpus}/bench/trees_settings.{split}.tsv"
    localrule: True
    params:
        content=lambda w: json.dumps(PLAN.treebank_entry(w.corpus, w.split)),


use rule settings as alignment_settings with:
    """The entry of one corpus with the word alignment of one split, which only the rule that reads it is given."""
    output:
        "results/corpora/{corpus}/alignment.{split}.yaml",
    log:
        "results/corpora/{corpus}/log/alignment_settings.{split}.txt",
    benchmark:
        "results/corpora/{corpus}/bench/alignment_settings.{split}.tsv"
    localrule: True
    params:
        content=lambda w: json.dumps(PLAN.alignment_entry(w.corpus, w.split)),

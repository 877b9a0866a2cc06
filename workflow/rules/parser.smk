# Stanza, offline: a tagger and a dependency parser from a treebank or a folder, then trees of given sentences.
PARSER = "results/{experiment}/parser"


rule parser_model:
    """Train a tagger and a parser with Stanza's own trainer (Qi et al. 2020), without external word vectors."""
    input:
        trees=lambda w: PLAN.learnt_trees(w.experiment),
    output:
        model=directory(f"{PARSER}/model"),
    log:
        f"{PARSER}/log/model.txt",
    benchmark:
        f"{PARSER}/bench/model.tsv"
    conda:
        "../../envs/parser.yaml"
    threads: 1
    resources:
        mem_mb=growing(32000),
        runtime=growing(2880),
    params:
        settings=settings_of("parser"),
        language=lambda w: PLAN.language(w.experiment),
    shell:
        "python -m heads parser_model --settings {params.settings:q} --trees {input.trees:q}"
        " --language {params.language} --model {output.model:q} --threads {threads} > {log:q} 2>&1"


rule parser:
    """Parse the sentences on which roles of heads are measured: those of the gold trees, or the corpus's own."""
    input:
        model=lambda w: PLAN.parser_model(w.experiment),
        words=lambda w: PLAN.parsed_words(w.experiment, w.trees),
        code=code_of("parser"),
    output:
        parsed=f"{PARSER}/{{trees}}.conllu",
    log:
        f"{PARSER}/log/{{trees}}.txt",
    benchmark:
        f"{PARSER}/bench/{{trees}}.tsv"
    conda:
        "../../envs/parser.yaml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(120),
    params:
        language=lambda w: PLAN.language(w.experiment),
        kind=lambda wildcards, input: "--trees" if input.words.endswith(".conllu") else "--text",
    shell:
        "python -m heads parser --model {input.model:q} --language {params.language} {params.kind} {input.words:q}"
        " --parsed {output.parsed:q} --threads {threads} > {log:q} 2>&1"

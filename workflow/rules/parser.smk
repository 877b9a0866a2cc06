# Stanza, offline: a tagger and a dependency parser from a treebank or a folder, then trees of held-out sentences.
PARSER = "results/{experiment}/parser"


rule parser_model:
    """Train a tagger and a parser with Stanza's own trainer (Qi et al. 2020), without word vectors from elsewhere."""
    input:
        settings=f"{SETTINGS}/parser.yaml",
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
        mem_mb=4000,
        runtime=720,
    params:
        language=lambda w: PLAN.language(w.experiment),
    shell:
        "python -m heads parser_model --settings {input.settings:q} --trees {input.trees:q}"
        " --language {params.language} --model {output.model:q} --threads {threads} > {log:q} 2>&1"


rule parser:
    """Parse the words of the dev trees and score the parse, or parse lines held out for roles, or the dev text."""
    input:
        model=lambda w: PLAN.parser_model(w.experiment),
        words=lambda w: PLAN.parsed_words(w.experiment),
        code=[f"{CODE}/{name}.py" for name in ("syntax/parsing", "syntax/attachment_scores", "syntax/tokenising")],
    output:
        parsed=f"{PARSER}/parsed.conllu",
        scores=f"{PARSER}/scores.tsv",
    log:
        f"{PARSER}/log/parser.txt",
    benchmark:
        f"{PARSER}/bench/parser.tsv"
    conda:
        "../../envs/parser.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=120,
    params:
        language=lambda w: PLAN.language(w.experiment),
        kind=lambda wildcards, input: "--trees" if input.words.endswith(".conllu") else "--text",
    shell:
        "python -m heads parser --model {input.model:q} --language {params.language} {params.kind} {input.words:q}"
        " --parsed {output.parsed:q} --scores {output.scores:q} --threads {threads} > {log:q} 2>&1"

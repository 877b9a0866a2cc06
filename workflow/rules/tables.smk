# Tables of all experiments that `run` names, with the papers' numbers beside ours.
from heads.config.corpus_entries import compared_with
from heads.tables import catalogue

COMPARED = compared_with({e: PLAN.corpora[PLAN.experiments[e].corpus] for e in RUN})


rule tables:
    """All tables."""
    input:
        expand(
            "results/tables/table_{name}.tsv",
            name=[
                *(name for name, table in catalogue.TABLES.items() if PLAN.runs_read(table.need, RUN)),
                "corpus",
                *(["parser"] if PLAN.with_scored_parser(RUN) else []),
            ],
        ),


rule table:
    """Gather one table from the runs of all experiments."""
    input:
        runs=lambda w: PLAN.inputs_asked(f"table_{w.name}", catalogue.TABLES[w.name].need, RUN),
        reference=lambda w: [f"{REFERENCE}/{name}" for name in catalogue.TABLES[w.name].need.reference],
        code=lambda w: code_of("table", catalogue.TABLES[w.name].function),
    output:
        report(
            "results/tables/table_{name}.tsv",
            caption="../report/captions.rst",
            category="Tables",
            labels={"table": "{name}"},
        ),
    log:
        "results/tables/log/{name}.txt",
    benchmark:
        "results/tables/bench/{name}.tsv"
    wildcard_constraints:
        name="|".join(catalogue.TABLES),
    conda:
        "../../envs/plots.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        runs=lambda w: PLAN.runs_read(catalogue.TABLES[w.name].need, RUN),
        compared=lambda w: COMPARED if catalogue.TABLES[w.name].need is catalogue.CLAIMS else [],
    shell:
        "python -m heads table --name {wildcards.name} --runs {params.runs:q} --compared-with {params.compared:q}"
        " --out {output:q} > {log:q} 2>&1"


rule table_corpus:
    """Sizes of the corpora: pairs, words, subwords, and what cleaning removed."""
    input:
        text=collect(
            "{corpus}/{name}",
            corpus=map(PLAN.corpus_of, RUN),
            name=collect(catalogue.CORPUS_FILES["corpus"], split=names.SPLITS),
        ),
        bpe=collect(
            "results/{experiment}/bpe/{name}",
            experiment=RUN,
            name=collect(catalogue.CORPUS_FILES["bpe"], split=names.SPLITS),
        ),
        reference=f"{REFERENCE}/voita_data.csv",
        code=code_of("table"),
    output:
        report(
            "results/tables/table_corpus.tsv",
            caption="../report/table_corpus.rst",
            category="Tables",
            labels={"table": "corpus"},
        ),
    log:
        "results/tables/log/corpus.txt",
    benchmark:
        "results/tables/bench/corpus.tsv"
    conda:
        "../../envs/plots.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        name="corpus",
        experiments=[f"results/{e}" for e in RUN],
        corpora=[PLAN.corpus_of(e) for e in RUN],
    shell:
        "python -m heads table --name {params.name:q} --experiments {params.experiments:q} --corpora {params.corpora:q}"
        " --out {output:q} > {log:q} 2>&1"


use rule table_corpus as table_parser with:
    """How well Stanza finds the gold trees, given their words: attachment scores (Zeman et al. 2018)."""
    input:
        gold=[PLAN.gold_trees(e) for e in PLAN.with_scored_parser(RUN)],
        parsed=[f"results/{e}/parser/stanza.conllu" for e in PLAN.with_scored_parser(RUN)],
        code=code_of("table"),
    output:
        report(
            "results/tables/table_parser.tsv",
            caption="../report/table_parser.rst",
            category="Tables",
            labels={"table": "parser"},
        ),
    log:
        "results/tables/log/parser.txt",
    benchmark:
        "results/tables/bench/parser.tsv"
    params:
        name="parser",
        experiments=[f"results/{e}" for e in PLAN.with_scored_parser(RUN)],
        corpora=[PLAN.corpus_of(e) for e in PLAN.with_scored_parser(RUN)],

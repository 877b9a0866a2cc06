# An interactive page of all experiments that `run` names.
from heads.explore.needs import EXPLORED, PICTURES, TABLES

DRAWN = {e: [name for name in PICTURES if PLAN.runs_read(catalogue.FIGURES[name].need, [e])] for e in RUN}


rule explore:
    """One HTML file with heads, attention, gates, models and claims, which opens with a double click."""
    input:
        runs=PLAN.inputs_read(EXPLORED, RUN),
        tables=[
            f"results/tables/table_{name}.tsv" for name in TABLES if PLAN.runs_read(catalogue.TABLES[name].need, RUN)
        ],
        figures=sorted(
            {
                f"results/figures/{name}.png" if name in ACROSS else f"results/figures/{e}/{name}.png"
                for e, names in DRAWN.items()
                for name in names
            }
        ),
        code=code_of("explore"),
        page=sorted(str(path) for path in Path(f"{CODE}/explore").glob("*.*") if path.suffix != ".py"),
    output:
        report(
            "results/explore.html",
            caption="../report/explore.rst",
            category="A page to look around in",
            labels={"page": "heads, attention, gates, models, claims"},
        ),
    log:
        "results/log/explore.txt",
    benchmark:
        "results/bench/explore.tsv"
    conda:
        "../../envs/plots.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(10),
    params:
        runs=PLAN.runs_read(EXPLORED, RUN),
        gates=gates_of(RUN),
    shell:
        "python -m heads explore --runs {params.runs:q} --tables {input.tables:q} --gates {params.gates:q}"
        " --figures {input.figures:q} --out {output:q} > {log:q} 2>&1"

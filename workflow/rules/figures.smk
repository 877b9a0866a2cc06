# Figures arranged as in the papers, as PDF and PNG, of one experiment each or of all together.
FIGURES = "results/figures/{experiment}"
DRAWN_BY = {
    "style": f"{HERE}/report/style.mplstyle",
    "code": lambda w: code_of("figure", catalogue.FIGURES[w.name].function),
    "reference": lambda w: [f"{REFERENCE}/{name}" for name in catalogue.FIGURES[w.name].need.reference],
}
ACROSS = [name for name, figure in catalogue.FIGURES.items() if figure.across]
ANIMATED = [name for name, figure in catalogue.FIGURES.items() if figure.animation]


rule figures:
    """All figures of the experiments that `run` names."""
    input:
        [
            f"results/figures/{e}/{name}.{ending}"
            for e in RUN
            for name, figure in catalogue.FIGURES.items()
            if name not in ACROSS and PLAN.runs_read(figure.need, [e])
            for ending in ("pdf", "png", *(["gif"] if name in ANIMATED else []))
        ],
        [
            f"results/figures/{name}.{ending}"
            for name in ACROSS
            if PLAN.runs_read(catalogue.FIGURES[name].need, RUN)
            for ending in ("pdf", "png")
        ],


rule figure:
    """Draw one figure of one experiment."""
    input:
        **DRAWN_BY,
        runs=lambda w: PLAN.inputs_asked(w.name, catalogue.FIGURES[w.name].need, [w.experiment]),
    output:
        pdf=f"{FIGURES}/{{name}}.pdf",
        png=report(
            f"{FIGURES}/{{name}}.png",
            caption="../report/captions.rst",
            category="Figures: {experiment}",
            labels={"figure": "{name}"},
        ),
    log:
        f"{FIGURES}/log/{{name}}.txt",
    benchmark:
        f"{FIGURES}/bench/{{name}}.tsv"
    wildcard_constraints:
        name="|".join(name for name in catalogue.FIGURES if name not in (*ANIMATED, *ACROSS)),
    conda:
        "../../envs/plots.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        runs=lambda w: PLAN.runs_read(catalogue.FIGURES[w.name].need, [w.experiment]),
        gates=lambda w: gates_of([w.experiment]) if catalogue.FIGURES[w.name].gates else [],
        compared=[],
        gif=[],
    shell:
        "python -m heads figure --name {wildcards.name} --runs {params.runs:q} --gates {params.gates:q}"
        " --compared-with {params.compared:q} --out-pdf {output.pdf:q} --out-png {output.png:q} --out-gif {params.gif:q}"
        " > {log:q} 2>&1"


use rule figure as figure_across with:
    """Draw one figure of all experiments that `run` names."""
    input:
        **DRAWN_BY,
        runs=lambda w: PLAN.inputs_asked(w.name, catalogue.FIGURES[w.name].need, RUN),
    output:
        pdf="results/figures/{name}.pdf",
        png=report(
            "results/figures/{name}.png",
            caption="../report/captions.rst",
            category="Figures of all experiments",
            labels={"figure": "{name}"},
        ),
    log:
        "results/figures/log/{name}.txt",
    benchmark:
        "results/figures/bench/{name}.tsv"
    wildcard_constraints:
        name="|".join(ACROSS),
    params:
        runs=lambda w: PLAN.runs_read(catalogue.FIGURES[w.name].need, RUN),
        gates=[],
        compared=lambda w: COMPARED if catalogue.FIGURES[w.name].need is catalogue.CLAIMS else [],


use rule figure as figure_animated with:
    """Draw a figure that has an animation: stills as PDF and PNG, and the animation."""
    input:
        **DRAWN_BY,
        runs=lambda w: PLAN.inputs_asked(w.name, catalogue.FIGURES[w.name].need, [w.experiment]),
    output:
        pdf=f"{FIGURES}/{{name}}.pdf",
        png=report(
            f"{FIGURES}/{{name}}.png",
            caption="../report/captions.rst",
            category="Figures: {experiment}",
            labels={"figure": "{name}"},
        ),
        gif=report(
            f"{FIGURES}/{{name}}.gif",
            caption="../report/captions.rst",
            category="Figures: {experiment}",
            labels={"figure": "{name}, moving"},
        ),
    log:
        f"{FIGURES}/log/{{name}}.txt",
    benchmark:
        f"{FIGURES}/bench/{{name}}.tsv"
    wildcard_constraints:
        name="|".join(ANIMATED),
    params:
        gif=lambda wildcards, output: output.gif,

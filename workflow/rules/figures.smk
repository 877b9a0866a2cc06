# Figures arranged as in the papers, as PDF and PNG, of one experiment each or of all together.
from heads.figures.needs import ACROSS, ANIMATED, FROM_SETTINGS
from heads.figures.needs import NEEDS as FIGURE_NEEDS

FIGURES = "results/figures/{experiment}"
DRAWN_BY = {
    "style": f"{HERE}/report/style.mplstyle",
    "code": code_of("figure"),
}


rule figures:
    """All figures of the experiments that `run` names."""
    input:
        [
            f"results/figures/{e}/{name}.{ending}"
            for e in RUN
            for name, need in FIGURE_NEEDS.items()
            if name not in ACROSS and PLAN.runs_read(need, [e])
            for ending in ("pdf", "png", *(["gif"] if name in ANIMATED else []))
        ],
        [
            f"results/figures/{name}.{ending}"
            for name in ACROSS
            if PLAN.runs_read(FIGURE_NEEDS[name], RUN)
            for ending in ("pdf", "png")
        ],


rule figure:
    """Draw one figure of one experiment."""
    input:
        **DRAWN_BY,
        runs=lambda w: PLAN.inputs_asked(w.name, FIGURE_NEEDS[w.name], [w.experiment]),
        reference=lambda w: [f"{REFERENCE}/{name}" for name in FIGURE_NEEDS[w.name].reference],
    output:
        pdf=f"{FIGURES}/{{name}}.pdf",
        png=report(
            f"{FIGURES}/{{name}}.png",
            caption="../report/figures.rst",
            category="Figures: {experiment}",
            labels={"figure": "{name}"},
        ),
    log:
        f"{FIGURES}/log/{{name}}.txt",
    benchmark:
        f"{FIGURES}/bench/{{name}}.tsv"
    wildcard_constraints:
        name="|".join(name for name in FIGURE_NEEDS if name not in (*ANIMATED, *ACROSS)),
    conda:
        "../../envs/plots.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        runs=lambda w: PLAN.runs_read(FIGURE_NEEDS[w.name], [w.experiment]),
        also=lambda w: ["--gates", gates_of([w.experiment])] if w.name in FROM_SETTINGS else [],
    shell:
        "python -m heads figure --name {wildcards.name} --runs {params.runs:q} {params.also:q}"
        " --out-pdf {output.pdf:q} --out-png {output.png:q} > {log:q} 2>&1"


use rule figure as figure_across with:
    """Draw one figure of all experiments that `run` names."""
    input:
        **DRAWN_BY,
        runs=lambda w: PLAN.inputs_asked(w.name, FIGURE_NEEDS[w.name], RUN),
        reference=lambda w: [f"{REFERENCE}/{name}" for name in FIGURE_NEEDS[w.name].reference],
    output:
        pdf="results/figures/{name}.pdf",
        png=report(
            "results/figures/{name}.png",
            caption="../report/figures.rst",
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
        runs=lambda w: PLAN.runs_read(FIGURE_NEEDS[w.name], RUN),
        also=lambda w: COMPARED if w.name in AGAINST_CORPORA else [],


use rule figure as animation with:
    """Draw a figure that has an animation: stills as PDF and PNG, and the animation."""
    input:
        **DRAWN_BY,
        runs=lambda w: PLAN.inputs_asked(w.name, FIGURE_NEEDS[w.name], [w.experiment]),
    output:
        pdf=f"{FIGURES}/{{name}}.pdf",
        png=report(
            f"{FIGURES}/{{name}}.png",
            caption="../report/figures.rst",
            category="Figures: {experiment}",
            labels={"figure": "{name}"},
        ),
        gif=report(
            f"{FIGURES}/{{name}}.gif",
            caption="../report/figures.rst",
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
        also=lambda wildcards, output: ["--out-gif", output.gif],

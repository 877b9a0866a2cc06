# Figures of one experiment each, in the paper's arrangement, as PDF and PNG.
FIGURES = "results/figures/{experiment}"


rule figures:
    """All figures of the experiments that `run` names."""
    input:
        [
            f"results/figures/{e}/{name}.{ending}"
            for e in RUN
            for name, need in FIGURE_NEEDS.items()
            if runs_read(need, [e])
            for ending in ("pdf", "png", *(["gif"] if name in ANIMATED else []))
        ],


rule figure:
    """Draw one figure of one experiment."""
    input:
        runs=lambda w: inputs_read(FIGURE_NEEDS[w.name], [w.experiment]),
        reference=lambda w: [f"{REFERENCE}/{name}" for name in FIGURE_NEEDS[w.name].reference],
        style="workflow/report/style.mplstyle",
        code=sorted(str(path) for room in ("tables", "figures") for path in Path(f"{CODE}/{room}").glob("*.py")),
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
        name="|".join(name for name in FIGURE_NEEDS if name not in ANIMATED),
    conda:
        "../../envs/plots.yaml"
    resources:
        mem_mb=1000,
        runtime=20,
    params:
        runs=lambda w: runs_read(FIGURE_NEEDS[w.name], [w.experiment]),
    shell:
        "python -m heads figure --name {wildcards.name} --runs {params.runs:q}"
        " --out-pdf {output.pdf:q} --out-png {output.png:q} > {log:q} 2>&1"


rule animation:
    """Draw a figure that also moves: its stills as PDF and PNG, and the animation."""
    input:
        runs=lambda w: inputs_read(FIGURE_NEEDS[w.name], [w.experiment]),
        style="workflow/report/style.mplstyle",
        code=sorted(str(path) for room in ("tables", "figures") for path in Path(f"{CODE}/{room}").glob("*.py")),
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
    conda:
        "../../envs/plots.yaml"
    resources:
        mem_mb=1000,
        runtime=20,
    params:
        runs=lambda w: runs_read(FIGURE_NEEDS[w.name], [w.experiment]),
    shell:
        "python -m heads figure --name {wildcards.name} --runs {params.runs:q}"
        " --out-pdf {output.pdf:q} --out-png {output.png:q} --out-gif {output.gif:q} > {log:q} 2>&1"

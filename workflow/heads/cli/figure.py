"""Draw one figure of one experiment, or of several together."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from heads.base.files import UserError
from heads.base.modules import named_function
from heads.base.runs import run_of
from heads.cli._flags import MAYBE, Compared, OutFile
from heads.cli._signature import Written
from heads.config.settings import gates_given
from heads.config.trainings import HardConcrete
from heads.figures.style import save, styled
from heads.tables.catalogue import FIGURES
from heads.tables.reading import load_reference, load_runs

SUCH = {
    kind: ", ".join(name for name, figure in FIGURES.items() if getattr(figure, kind))
    for kind in ("across", "gates", "animation")
}
"""The figures of each kind that flags speak of."""


def run(
    *,
    name: Annotated[str, {"choices": FIGURES}, "which figure"],
    runs: Annotated[
        Sequence[Path], f"folders results/EXPERIMENT/RUN of one experiment; of several for {SUCH['across']}"
    ],
    gates: Annotated[
        dict[str, HardConcrete] | None,
        {"type": gates_given},
        MAYBE,
        f"hard_concrete settings by experiment, JSON (for {SUCH['gates']})",
    ] = None,
    compared_with: Compared = (),
    out_pdf: Annotated[OutFile, "the PDF to write"],
    out_png: Annotated[OutFile, "the PNG to write"],
    out_gif: Annotated[
        Path | None, MAYBE, Written(), f"the animation to write as well (for {SUCH['animation']})"
    ] = None,
) -> None:
    """Read the runs, draw the figure, and write it."""
    figure = FIGURES[name]
    frames = load_runs(figure.need, runs, dict(compared_with))
    experiments = list(dict.fromkeys(run_of(folder)[0] for folder in runs))
    if len(experiments) > 1 and not figure.across:
        raise UserError(f"--runs names the experiments {' and '.join(experiments)}: draw one experiment at a time.")
    if out_gif and not figure.animation:
        raise UserError(f"{name} has no animation: leave out --out-gif.")
    if (gates is not None) != figure.gates:
        raise UserError(f"--gates is required for {SUCH['gates']} and not allowed for any other figure.")
    others: list[Any] = [load_reference(file) for file in figure.need.reference]
    if gates:
        others.append(gates[experiments[0]])
    with styled():
        drawn = named_function(figure.function)(frames, *others, ", ".join(experiments))
        save(drawn, out_pdf, out_png)
        if out_gif:
            named_function(figure.animation)(frames, experiments[0], out_gif)

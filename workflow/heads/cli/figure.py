"""Draw one figure of one experiment, or of several together."""

import argparse
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.base.modules import named_function
from heads.base.runs import run_of
from heads.cli._flags import add_compared_argument, add_output_argument
from heads.config.settings import gates_given
from heads.figures.style import save, styled
from heads.tables.catalogue import FIGURES
from heads.tables.reading import load_reference, load_runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--name", required=True, choices=FIGURES, help="which figure")
    across, gates, animated = (
        ", ".join(name for name, figure in FIGURES.items() if getattr(figure, kind))
        for kind in ("across", "gates", "animation")
    )
    runs = f"folders results/EXPERIMENT/RUN of one experiment; of several for {across}"
    parser.add_argument("--runs", required=True, nargs="+", type=Path, help=runs)
    settings = f"hard_concrete settings by experiment, JSON (for {gates})"
    parser.add_argument("--gates", type=gates_given, nargs="?", help=settings)
    add_compared_argument(parser)
    add_output_argument(parser, "--out-pdf", what="the PDF to write")
    add_output_argument(parser, "--out-png", what="the PNG to write")
    what = f"the animation to write as well (for {animated})"
    add_output_argument(parser, "--out-gif", what=what, nargs="?", required=False)


def run(arguments: argparse.Namespace) -> None:
    """Read the runs, draw the figure, and write it."""
    name, figure = arguments.name, FIGURES[arguments.name]
    frames = load_runs(figure.need, arguments.runs, dict(arguments.compared_with))
    experiments = list(dict.fromkeys(run_of(folder)[0] for folder in arguments.runs))
    if len(experiments) > 1 and not figure.across:
        raise UserError(f"--runs names the experiments {' and '.join(experiments)}: draw one experiment at a time.")
    if arguments.out_gif and not figure.animation:
        raise UserError(f"{name} has no animation: leave out --out-gif.")
    if (arguments.gates is not None) != figure.gates:
        wanted = ", ".join(name for name, one in FIGURES.items() if one.gates)
        raise UserError(f"--gates is required for {wanted} and not allowed for any other figure.")
    others: list[Any] = [load_reference(file) for file in figure.need.reference]
    if arguments.gates:
        others.append(arguments.gates[experiments[0]])
    with styled():
        drawn = named_function(figure.function)(frames, *others, ", ".join(experiments))
        save(drawn, arguments.out_pdf, arguments.out_png)
        if arguments.out_gif:
            named_function(figure.animation)(frames, experiments[0], arguments.out_gif)

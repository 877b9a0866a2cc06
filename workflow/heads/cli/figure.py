"""Draw one figure of one experiment, or of several together."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from heads.base.files import UserError
from heads.base.runs import run_of
from heads.cli._flags import add_compared_argument, add_output_argument
from heads.config.settings import gates_given
from heads.figures.cross_attention import alignment_heads, cross_attention
from heads.figures.dependencies import dependency_scores, relative_positions
from heads.figures.functions import dynamics, functions_retained
from heads.figures.gates import gates_closing, hard_concrete, write_animation
from heads.figures.importance import head_functions, heads_needed, relevance_all
from heads.figures.maps import attention_maps
from heads.figures.measures import measures
from heads.figures.michel import FIGURES as MICHEL_FIGURES
from heads.figures.needs import ACROSS, ANIMATED, FROM_SETTINGS, NEEDS
from heads.figures.pruning import bleu_encoder_heads, heads_by_layer, heads_by_type, score_scratch, scratch_curves
from heads.figures.scoreboard import scoreboard
from heads.figures.selection import selection
from heads.figures.style import save, styled
from heads.tables.reading import load_reference, load_runs

FIGURES: dict[str, Callable[..., Figure]] = {
    "heads_needed": heads_needed,
    "head_functions": head_functions,
    "relevance_all": relevance_all,
    "measures": measures,
    "relative_positions": relative_positions,
    "dynamics": dynamics,
    "dependency_scores": dependency_scores,
    "hard_concrete": hard_concrete,
    "attention_maps": attention_maps,
    "alignment_heads": alignment_heads,
    "cross_attention": cross_attention,
    "bleu_encoder_heads": bleu_encoder_heads,
    "functions_retained": functions_retained,
    "heads_by_type": heads_by_type,
    "heads_by_layer": heads_by_layer,
    "score_scratch": score_scratch,
    "scratch_curves": scratch_curves,
    **MICHEL_FIGURES,
    "selection": selection,
    "scoreboard": scoreboard,
    "gates_closing": gates_closing,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--name", required=True, choices=FIGURES, help="which figure")
    parser.add_argument(
        "--runs",
        required=True,
        nargs="+",
        type=Path,
        help=f"folders results/EXPERIMENT/RUN of one experiment; of several for {', '.join(ACROSS)}",
    )
    settings = f"hard_concrete settings by experiment, JSON (for {', '.join(FROM_SETTINGS)})"
    parser.add_argument("--gates", type=gates_given, nargs="?", help=settings)
    add_compared_argument(parser)
    add_output_argument(parser, "--out-pdf", what="the PDF to write")
    add_output_argument(parser, "--out-png", what="the PNG to write")
    what = f"the animation to write as well (for {', '.join(ANIMATED)})"
    add_output_argument(parser, "--out-gif", what=what, nargs="?", required=False)


def run(arguments: argparse.Namespace) -> None:
    """Read the runs, draw the figure, and write it."""
    need = NEEDS[arguments.name]
    frames = load_runs(need, arguments.runs, dict(arguments.compared_with))
    experiments = list(dict.fromkeys(run_of(folder)[0] for folder in arguments.runs))
    if len(experiments) > 1 and arguments.name not in ACROSS:
        raise UserError(f"--runs names the experiments {' and '.join(experiments)}: draw one experiment at a time.")
    if arguments.out_gif and arguments.name not in ANIMATED:
        raise UserError(f"{arguments.name} has no animation: leave out --out-gif.")
    if (arguments.gates is not None) != (arguments.name in FROM_SETTINGS):
        raise UserError(f"--gates is required for {', '.join(FROM_SETTINGS)} and not allowed for any other figure.")
    others: list[Any] = [load_reference(name) for name in need.reference]
    if arguments.gates:
        others.append(arguments.gates[experiments[0]])
    names = ", ".join(experiments)
    with styled():
        save(FIGURES[arguments.name](frames, *others, names), arguments.out_pdf, arguments.out_png)
        if arguments.out_gif:
            write_animation(frames, experiments[0], arguments.out_gif)

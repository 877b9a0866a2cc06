"""Which functions the retained encoder heads have at each size (Voita et al., Fig 8)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from heads.figures.style import FUNCTION_COLOURS, FUNCTION_LABELS, first_seed, new_figure, panel, shared_legend
from heads.tables.reading import Frames
from heads.tables.roles import FUNCTIONS, count_functions


def functions_retained(frames: Frames, paper: pd.DataFrame, experiment: str) -> Figure:
    """A stacked bar a model, the unpruned one first, then one a lambda; beside it, the paper's OpenSubtitles models."""
    counts = first_seed(count_functions(frames))
    counts = counts[(counts["kind"] == "baseline") | (counts["lam"] != "0")]
    counts = counts.sort_values("live", ascending=False, kind="stable")
    lambdas = ["full" if kind == "baseline" else lam for kind, lam in zip(counts["kind"], counts["lam"], strict=True)]
    theirs = paper.pivot(index="enc_self", columns="function", values="heads").sort_index(ascending=False)
    title = f"Functions of the encoder heads that pruning leaves, experiment “{experiment}”"
    widths = [1.5 * max(len(counts), 4), len(theirs)]
    figure, (axes,) = new_figure(2.7, title, ncols=2, gridspec_kw={"width_ratios": widths})
    ticks = [f"{live}\n{lam}" for live, lam in zip(counts["live"], lambdas, strict=True)]
    _bars(axes[0], counts, ticks)
    axes[0].set_xlabel("encoder heads left\nand λ of the run")
    axes[0].set_ylabel("encoder heads")
    _bars(axes[1], theirs, [str(size) for size in theirs.index])
    axes[1].set_xlabel("encoder heads left")
    panel(axes[0], "a", "this experiment")
    panel(axes[1], "b", "paper, OpenSubtitles (Fig 8)")
    shared_legend(figure, list(axes), columns=len(FUNCTIONS))
    return figure


def _bars(axes: Axes, counts: pd.DataFrame, ticks: list[str]) -> None:
    places = np.arange(len(counts))
    below = np.zeros(len(counts))
    for name in FUNCTIONS:
        heights = counts[name].to_numpy(float)
        axes.bar(places, heights, 0.78, below, color=FUNCTION_COLOURS[name], label=FUNCTION_LABELS[name])
        below += heights
    axes.set_xticks(places, ticks, linespacing=1.1)
    axes.grid(visible=False, axis="x")
    axes.set_ylim(0, max(below.max() * 1.05, 1))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(axis="x", length=0)

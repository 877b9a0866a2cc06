"""Models that classify: heads masked alone, layers cut to one head, and what gates leave (Michel et al. for BERT)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from heads.figures.michel import bins_of, fig2, fig3, fig5, histogram
from heads.figures.selection import selection
from heads.figures.style import (
    ACCURACY,
    OURS,
    PAPER_COLOURS,
    PAPER_MARKERS,
    TYPE_COLOURS,
    first_seed,
    mean_line,
    new_figure,
    panel,
    seed_note,
    spread_note,
)
from heads.tables.michel import SIGNIFICANT
from heads.tables.pruning import heads_left
from heads.tables.reading import RUN_COLUMNS, Frames, has_penalty, is_control

FREE_PERCENT = 40
"""What the paper masks of BERT on MNLI without a noticeable loss (Fig 3)."""


def nli_heads(frames: Frames, paper: pd.DataFrame, experiment: str) -> Figure:
    """How many heads change accuracy by how much when masked alone; and each layer with its best head only."""
    heads = first_seed(frames["ablation.tsv"])
    title = f"One head masked, or left alone, experiment “{experiment}”{seed_note(frames['ablation.tsv'])}"
    figure, (axes,) = new_figure(2.4, title, ncols=2)
    change = heads["bleu_change"]
    histogram(axes[0], change, heads["p_value"] < SIGNIFICANT, bins_of(change), TYPE_COLOURS["enc_self"])
    axes[0].set(xlabel=f"change of {ACCURACY} without the head; dark: p < {SIGNIFICANT}", ylabel="heads")
    panel(axes[0], "a", "each head masked alone")
    layers = first_seed(frames["layers_to_one.tsv"])
    _layers(axes[1], layers["layer"], layers["bleu_change"], "ours, head chosen on dev", OURS, "o")
    style = (f"paper, {paper['model'].iloc[0]} on {paper['task'].iloc[0]}", next(iter(PAPER_COLOURS.values())))
    _layers(axes[1], paper["layer"], paper["accuracy_change"], *style, next(iter(PAPER_MARKERS.values())))
    axes[1].axhline(0, color="#666666", linewidth=0.9)
    axes[1].set(xlabel="depth of the layer, first to last", ylabel=f"change of {ACCURACY}")
    axes[1].legend(fontsize=6)
    panel(axes[1], "b", "each layer cut to one head")
    return figure


def _layers(axes: Axes, layers: pd.Series, change: pd.Series, label: str, colour: str, marker: str) -> None:
    axes.plot(layers / max(layers.max(), 1), change, color=colour, marker=marker, label=label)


def nli_pruning(frames: Frames, experiment: str) -> Figure:
    """Accuracy against heads left: gates with a penalty and to a number, and the same heads from scratch."""
    keys = list(RUN_COLUMNS)
    runs = heads_left(frames["model.json"]).merge(frames["accuracy.json"][[*keys, "accuracy"]], on=keys)
    figure, ((axes,),) = new_figure(2.8, f"Heads pruned, experiment “{experiment}”{spread_note(runs)}")
    pruned = runs["kind"] == "pruned"
    lines = {
        "gates, fixed λ": (runs[pruned & has_penalty(runs)], OURS, "o"),
        "gates, to a number": (runs[pruned & (runs["keep"] != "")], "#009E73", "s"),
        "the heads of gates, from scratch": (runs[runs["kind"] == "scratch"], "#D55E00", "D"),
    }
    for label, (points, colour, marker) in lines.items():
        if len(points):
            named = points.assign(target=points["lam"] + points["keep"])
            mean_line(axes, named, "total", "accuracy", color=colour, marker=marker, label=label)
    for label, rows, dashes in (
        ("unpruned model", runs[runs["kind"] == "baseline"], "-"),
        ("control, λ = 0", runs[pruned & is_control(runs)], "--"),
        ("likeliest label alone", frames["accuracy.json"].assign(accuracy=frames["accuracy.json"]["majority"]), ":"),
    ):
        if len(rows):
            axes.axhline(rows["accuracy"].mean(), color="#666666", linewidth=0.9, linestyle=dashes, label=label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel=f"heads left, of {int(runs['of'].max())}", ylabel=f"{ACCURACY}, test set")
    axes.invert_xaxis()
    axes.legend(fontsize=6)
    return figure


FIGURES: dict[str, Callable[..., Figure]] = {
    "nli_heads": nli_heads,
    "nli_domains": fig2,
    "nli_masking_curve": partial(fig3, free=FREE_PERCENT, corner="lower left"),
    "nli_checkpoints": fig5,
    "nli_pruning": nli_pruning,
    "nli_selection": selection,
}
"""Where a figure is drawn as that of translations is, by the same function."""

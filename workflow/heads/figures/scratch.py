"""Dev loss and dev BLEU of the heads left by pruning, while they are trained from scratch."""

from __future__ import annotations

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from heads.figures.style import OURS, new_figure, none_here, panel, seed_note, shared_legend
from heads.tables.reading import Frames
from heads.tables.scratch_curve import BETTER, curves_of, scratch_curve_table

LABELS = {"dev_loss": "dev loss, nats per subword", "dev_bleu": "BLEU, against the dev set's targets"}


def scratch_curves(frames: Frames, experiment: str) -> Figure:
    """Dev curves of models from scratch, with level lines for the unpruned model and pruned ones of the same heads."""
    rows, curves = scratch_curve_table(frames), curves_of(frames)
    rows = rows[rows["seed"] == rows["seed"].min()].sort_values("heads", ascending=False)
    title = f"When training from scratch catches up: “{experiment}”{seed_note(frames['train.jsonl'])}"
    figure, (axes,) = new_figure(2.9, title, ncols=2)
    colours = sns.color_palette("viridis", len(rows))
    for each, letter, score in zip(axes, "ab", BETTER, strict=True):
        each.set(xlabel="updates from scratch", ylabel=LABELS[score])
        panel(each, letter, LABELS[score].split(",")[0])
        for row, colour in zip(rows.to_dict("records"), colours, strict=True):
            curve = curves[row["experiment"], "scratch", row["scope"], "", row["lam"], row["keep"], row["seed"]]
            if curve[score].notna().any():
                own = f"{row['heads']} heads"
                each.plot(curve["update"], curve[score], color=colour, label=f"{own}, from scratch")
                _level(each, row[f"{score}_pruned"], color=colour, linestyle="--", label=f"{own}, pruned")
        if each.lines:
            _level(each, rows[f"{score}_unpruned"].iloc[0], color=OURS, linestyle=":", label="unpruned")
        else:
            none_here(each, "not measured")
    axes[0].set_yscale("log")
    axes[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].yaxis.set_minor_formatter(NullFormatter())
    shared_legend(figure, list(axes), columns=4)
    return figure


def _level(axes: Axes, value: float, **style: Any) -> None:
    """Draw a line across the panel, unless the value is missing."""
    if not pd.isna(value):
        axes.axhline(value, linewidth=0.9, **style)

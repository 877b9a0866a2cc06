"""Which cross-attention heads align words, and which layers still do after pruning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from heads.figures.style import colour_bar, first_seed, heat_map, matrix, new_figure, panel, seed_note
from heads.tables.alignment import best_heads
from heads.tables.labels import MINUS
from heads.tables.picking import first_of, in_order, is_control, pruned_by_gates
from heads.tables.reading import Frames

PALE = 0.6
"""The error rate above which a cell is pale and its text dark."""


def alignment_heads(frames: Frames, experiment: str) -> Figure:
    """Alignment error rate of each unpruned cross-attention head, and of each layer's best head after pruning.

    Uses the first step in the settings. With several seeds, the first is drawn and the title says so.
    """
    rows = first_of(frames["alignment_heads.tsv"], "step")
    note, rows = seed_note(rows), first_seed(rows)
    baseline = rows[rows["kind"] == "baseline"]
    layers = int(baseline["layer"].max()) + 1
    title = f"Which cross-attention heads align words? Experiment “{experiment}”{note}"
    height = 1.3 + 0.26 * max(layers, 4)
    figure, (axes,) = new_figure(height, title, ncols=2, gridspec_kw={"width_ratios": [1.25, 1]})
    _heads(figure, axes[0], baseline)
    panel(axes[0], "a", "unpruned model; framed: aligns")
    _layers(axes[1], rows, layers)
    panel(axes[1], "b", "best head of each layer")
    return figure


def _heads(figure: Figure, axes: Axes, rows: pd.DataFrame) -> None:
    values = matrix(rows, "aer")
    cells = heat_map(axes, values, limits=(0.0, 1.0), colours="Greens_r")
    size = min(5.5, 44 / values.shape[1])
    for layer, head, rate, aligns in rows[["layer", "head", "aer", "aligns"]].itertuples(index=False):
        colour = "white" if rate < PALE else "black"
        middle = {"ha": "center", "va": "center", "fontsize": size, "color": colour}
        axes.text(head + 0.5, layer + 0.5, f"{rate:.2f}".replace("0.", "."), **middle)
        if aligns:
            axes.add_patch(Rectangle((head + 0.04, layer + 0.04), 0.92, 0.92, fill=False, edgecolor="#D55E00"))
    best = rows["offset_aer"].iloc[0]
    colour_bar(figure, cells, [axes], "alignment error rate", aspect=18)
    figure.axes[-1].axhline(best, color="#D55E00", linewidth=1.2)
    axes.set_xticks(np.arange(values.shape[1]) + 0.5, [str(head + 1) for head in range(values.shape[1])])
    offset = f"{int(rows['offset'].iloc[0]):+d}".replace("-", MINUS).replace("+0", "0")
    axes.set(ylabel="layer", xlabel=f"head; line on the bar: best offset ({offset}), AER {best:.2f}")


def _layers(axes: Axes, rows: pd.DataFrame, layers: int) -> None:
    """Draw a line over the layers for each model, leaving out layers without a live head."""
    best = best_heads(rows).sort_values("layer")
    pruned = best[best["kind"] == "pruned"]
    by_gates = pruned_by_gates(pruned)
    targets = in_order(by_gates)
    control: dict[str, Any] = {"color": "#999999", "linestyle": (0, (4, 2)), "label": "control, λ = 0"}
    drawn: list[tuple[pd.DataFrame, dict[str, Any]]] = [
        (best[best["kind"] == "baseline"], {"color": "black", "label": "unpruned"})
    ]
    drawn.append((pruned[is_control(pruned)], control))
    for target, colour in zip(targets, sns.color_palette("plasma_r", len(targets)), strict=True):
        drawn.append((by_gates[by_gates["target"] == target], {"color": colour, "label": target}))
    for model, style in drawn:
        if len(model):
            axes.plot(model["layer"] + 1, model["aer"], marker="o", markersize=3, **style)
    axes.axhline(rows["offset_aer"].iloc[0], color="#D55E00", linewidth=1.0, label="best offset")
    axes.set(xlabel="layer", ylabel="alignment error rate", xlim=(0.7, layers + 0.3), ylim=(0, 1.02))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(fontsize=5, ncols=2)

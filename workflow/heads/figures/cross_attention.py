"""Cross-attention heads: which of them align words, what they look at, and which layers still align after pruning."""

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from heads.figures.style import colour_bar, first_seed, heat_map, matrix, new_figure, panel, seed_note
from heads.tables.cross_attention import best_heads
from heads.tables.labels import MINUS
from heads.tables.picking import first_of, in_order, is_control, pruned_by_gates
from heads.tables.reading import Frames

FRAME = "#D55E00"


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
    cells = _numbered(axes[0], baseline, "aer", "aligns", "Greens_r", dark=baseline["aer"] < 0.6)
    best = baseline["offset_aer"].iloc[0]
    colour_bar(figure, cells, [axes[0]], "alignment error rate", aspect=18)
    figure.axes[-1].axhline(best, color=FRAME, linewidth=1.2)
    offset = f"{int(baseline['offset'].iloc[0]):+d}".replace("-", MINUS).replace("+0", "0")
    axes[0].set(ylabel="layer", xlabel=f"head; line on the bar: best offset ({offset}), AER {best:.2f}")
    panel(axes[0], "a", "unpruned model; framed: aligns")
    _layers(axes[1], rows, layers)
    panel(axes[1], "b", "best head of each layer")
    return figure


def cross_attention(frames: Frames, experiment: str) -> Figure:
    """Share of steps in which each head of the unpruned model looks at the linked source subword, by role.

    With several seeds, the first is drawn and the title says so.
    """
    rows = frames["cross_attention_roles.tsv"]
    note, rows = seed_note(rows), first_seed(rows)
    roles = list(dict.fromkeys(rows["role"]))
    layers = int(rows["layer"].max()) + 1
    title = f"What do cross-attention heads look at? Experiment “{experiment}”{note}"
    figure, (axes,) = new_figure(1.3 + 0.3 * max(layers, 2), title, ncols=len(roles))
    for each, role, letter in zip(axes, roles, "abc", strict=True):
        part = rows[rows["role"] == role]
        cells = _numbered(each, part, "share", "holds", "Greens", dark=part["share"] > 0.55)
        each.set(ylabel="layer", xlabel=f"head; best offset {part['offset_share'].iloc[0]:.2f}")
        panel(each, letter, f"source of token {role}")
    colour_bar(figure, cells, [axes[-1]], "share of steps; framed: a role", aspect=18)
    return figure


def _numbered(axes: Axes, rows: pd.DataFrame, number: str, frame: str, colours: str, *, dark: pd.Series) -> Collection:
    """Draw the column `number` as cells that say their number, framed where the column `frame` is true."""
    values = matrix(rows, number)
    cells = heat_map(axes, values, limits=(0.0, 1.0), colours=colours)
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": min(5.5, 44 / values.shape[1])}
    found = rows[["layer", "head", number, frame]].assign(colour=dark.map({True: "white", False: "black"}))
    for layer, head, share, framed, colour in found.itertuples(index=False):
        axes.text(head + 0.5, layer + 0.5, f"{share:.2f}".replace("0.", "."), color=colour, **style)
        if framed:
            axes.add_patch(Rectangle((head + 0.04, layer + 0.04), 0.92, 0.92, fill=False, edgecolor=FRAME))
    return cells


def _layers(axes: Axes, rows: pd.DataFrame, layers: int) -> None:
    """Draw a line over the layers for each model, leaving out layers without a live head."""
    best = best_heads(rows).sort_values("layer")
    pruned = best[best["kind"] == "pruned"]
    by_gates = pruned_by_gates(pruned)
    targets = in_order(by_gates)
    control = {"color": "#999999", "linestyle": (0, (4, 2)), "label": "control, λ = 0"}
    drawn: list[tuple[pd.DataFrame, dict[str, Any]]] = [
        (best[best["kind"] == "baseline"], {"color": "black", "label": "unpruned"}),
        (pruned[is_control(pruned)], control),
    ]
    for target, colour in zip(targets, sns.color_palette("plasma_r", len(targets)), strict=True):
        drawn.append((by_gates[by_gates["target"] == target], {"color": colour, "label": target}))
    for model, style in drawn:
        if len(model):
            axes.plot(model["layer"] + 1, model["aer"], marker="o", markersize=3, **style)
    axes.axhline(rows["offset_aer"].iloc[0], color=FRAME, linewidth=1.0, label="best offset")
    axes.set(xlabel="layer", ylabel="alignment error rate", xlim=(0.7, layers + 0.3), ylim=(0, 1.02))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(fontsize=5, ncols=2)

"""Where cross-attention heads look: at the source of the token being written, of the previous or the next one."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from heads.figures.style import colour_bar, first_seed, heat_map, matrix, new_figure, panel, seed_note
from heads.tables.reading import Frames

PALE = 0.55
"""The share below which a cell is pale and its text dark."""


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
        values = matrix(part, "share")
        cells = heat_map(each, values, limits=(0.0, 1.0), colours="Greens")
        for layer, head, share, holds in part[["layer", "head", "share", "holds"]].itertuples(index=False):
            _cell(each, (layer, head), share, framed=bool(holds), heads=values.shape[1])
        each.set_xticks(np.arange(values.shape[1]) + 0.5, [str(head + 1) for head in range(values.shape[1])])
        each.set(ylabel="layer", xlabel=f"head; best offset {part['offset_share'].iloc[0]:.2f}")
        panel(each, letter, f"source of the token {role}")
    colour_bar(figure, cells, [axes[-1]], "share of steps; framed: a role", aspect=18)
    return figure


def _cell(axes: Axes, place: tuple[int, int], share: float, *, framed: bool, heads: int) -> None:
    layer, head = place
    colour = "white" if share > PALE else "black"
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": min(5.5, 44 / heads), "color": colour}
    axes.text(head + 0.5, layer + 0.5, f"{share:.2f}".replace("0.", "."), **middle)
    if framed:
        axes.add_patch(Rectangle((head + 0.04, layer + 0.04), 0.92, 0.92, fill=False, edgecolor="#D55E00"))

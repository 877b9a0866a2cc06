"""Gates closing during training: a strip of heads for each run, as a still figure and as an animation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray
from PIL import Image

from heads.base.files import UserError, atomic_path
from heads.base.names import ATTENTIONS
from heads.figures.style import FULL_WIDTH, colour_bar, first_seed, new_figure
from heads.tables.picking import in_order, is_control, pruned_by_gates
from heads.tables.reading import Frames

STILLS = 4
FRAMES = 30
FRAME_MILLISECONDS, LAST_FRAME_MILLISECONDS = 150, 2500
MOST_INCHES = 0.12
ANIMATION_DPI = 140
GIF_COLOURS = 128
BAR_LABEL = "P(gate is open)"
TYPE_LABELS = {"enc_self": "encoder\nself", "dec_self": "decoder\nself", "dec_enc": "decoder-\nencoder"}

Strip = dict[int, NDArray[np.float64]]
"""P(open) as [rows, heads] by update; rows are layers, grouped by kind of attention, both in rising order."""


def strips(gates: pd.DataFrame) -> dict[str, Strip]:
    """The recorded P(open) for each penalty or number of heads, the control first; see `pruned_by_gates`.

    gates: the frame of `gates.jsonl`, from the runs of one experiment, scope and seed.
    """
    shown = pd.concat([gates[is_control(gates)].assign(target="λ 0"), pruned_by_gates(gates)])
    placed = shown.assign(place=shown["attention"].map(ATTENTIONS.index)).sort_values(["place", "layer", "head"])
    shape = (-1, int(gates["head"].max()) + 1)
    found: dict[str, Strip] = {}
    for target in in_order(shown):
        records = placed[placed["target"] == target].groupby("update")["p_open"]
        found[target] = {int(update): record.to_numpy(float).reshape(shape) for update, record in records}
    return found


def updates_to_show(recorded: dict[str, Strip], count: int) -> list[int]:
    """At most `count` recorded updates, evenly spread, including the first and the last."""
    updates = sorted({update for strip in recorded.values() for update in strip})
    places = np.linspace(0, len(updates) - 1, min(count, len(updates))).round().astype(int)
    return [updates[place] for place in places]


def at(strip: Strip, update: int) -> NDArray[np.float64]:
    """The last record at or before `update`, or the first one if all are later."""
    return strip[max((known for known in strip if known <= update), default=min(strip))]


def gates_closing(frames: Frames, experiment: str) -> Figure:
    """The still figure: a row for each update shown, a column for each run."""
    gates = _gates(frames)
    recorded = strips(gates)
    chosen = updates_to_show(recorded, STILLS)
    figure, axes = _grid(recorded, len(chosen), f"Gates closing, experiment “{experiment}”", head_inches=0.75)
    for row, update in zip(axes, chosen, strict=True):
        for each, strip in zip(row, recorded.values(), strict=True):
            image = _draw(each, at(strip, update), gates)
        _name_rows(row[0], gates)
        style: dict[str, Any] = {"xycoords": "axes fraction", "rotation": 270, "va": "center", "fontsize": 6.5}
        row[-1].annotate(f"update {update}", (1.04, 0.5), **style)
    for each, target in zip(axes[0], recorded, strict=True):
        each.set_title(target, loc="center")
    colour_bar(figure, image, axes.ravel().tolist(), BAR_LABEL, aspect=40)
    return figure


def write_animation(frames: Frames, experiment: str, gif: Path) -> None:
    """Write the animation: the strips of all runs side by side at up to FRAMES updates, the last one shown longer."""
    gates = _gates(frames)
    recorded = strips(gates)
    chosen = updates_to_show(recorded, FRAMES)
    title = f"Gates closing, experiment “{experiment}”"
    figure, (axes,) = _grid(recorded, 1, title, head_inches=1.0)
    figure.set_dpi(ANIMATION_DPI)
    images = [_draw(each, at(strip, chosen[0]), gates) for each, strip in zip(axes, recorded.values(), strict=True)]
    _name_rows(axes[0], gates)
    colour_bar(figure, images[0], list(axes), BAR_LABEL, aspect=20)
    pictures = []
    for update in chosen:
        figure.suptitle(f"{title}, update {update} (below: expected open heads)", x=0.01, ha="left")
        for each, image, (target, strip) in zip(axes, images, recorded.items(), strict=True):
            values = at(strip, update)
            image.set_data(values)
            each.set_title(f"{target}\n{values.sum():.1f}", loc="center")
        pictures.append(_picture(figure))
    times = [FRAME_MILLISECONDS] * (len(pictures) - 1) + [LAST_FRAME_MILLISECONDS]
    with atomic_path(gif) as temporary:
        pictures[0].save(temporary, format="GIF", save_all=True, append_images=pictures[1:], duration=times, loop=0)


def _gates(frames: Frames) -> pd.DataFrame:
    gates = frames["gates.jsonl"]
    if gates.empty:
        raise UserError("gates.jsonl has no records in any run: give gates runs that recorded some.")
    return first_seed(gates)


def _picture(figure: Figure) -> Image.Image:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    # The first picture fixes the layout: computing it for every frame would jitter and take most of the time.
    figure.set_layout_engine("none")
    pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    return pixels.quantize(GIF_COLOURS, dither=Image.Dither.NONE)


def _grid(
    recorded: dict[str, Strip], rows: int, title: str, *, head_inches: float
) -> tuple[Figure, NDArray[np.object_]]:
    height, width = next(iter(next(iter(recorded.values())).values())).shape
    # Wide cells are kept low so that all rows fit on a page.
    cell = min(MOST_INCHES, (FULL_WIDTH - 1.3) / (len(recorded) * (width + 1)))
    inches = head_inches + rows * (0.12 + cell * height)
    return new_figure(inches, title, nrows=rows, ncols=len(recorded), sharex=True, sharey=True)


def _draw(axes: Axes, values: NDArray[np.float64], gates: pd.DataFrame) -> AxesImage:
    """Draw one strip: the first layer of the first kind of attention at the bottom, a line between the kinds."""
    image = axes.imshow(values, cmap="viridis", vmin=0, vmax=1, aspect="auto", origin="lower")
    rows, heads = values.shape
    axes.set_xticks(np.arange(1, heads) - 0.5, [], minor=True)
    axes.set_yticks(np.arange(1, rows) - 0.5, [], minor=True)
    axes.grid(visible=False)
    axes.grid(which="minor", color="white", linewidth=0.4)
    layers = int(gates["layer"].max()) + 1
    for edge in range(layers, rows, layers):
        axes.axhline(edge - 0.5, color="white", linewidth=2)
    axes.set_xticks([])
    axes.set_yticks(range(rows), [str(row % layers + 1) for row in range(rows)], fontsize=5)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    return image


def _name_rows(axes: Axes, gates: pd.DataFrame) -> None:
    layers = int(gates["layer"].max()) + 1
    kinds = [kind for kind in ATTENTIONS if (gates["attention"] == kind).any()]
    for place, kind in enumerate(kinds):
        at: dict[str, Any] = {"xy": (0, (place + 0.5) * layers - 0.5), "xycoords": ("axes fraction", "data")}
        beside: dict[str, Any] = {"xytext": (-12, 0), "textcoords": "offset points", "ha": "right", "va": "center"}
        axes.annotate(TYPE_LABELS[kind], **at, **beside, rotation=90, fontsize=5)

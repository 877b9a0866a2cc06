"""Gates: their hard-concrete distribution (Voita et al., Fig 6), where they ended up, and how they closed."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray
from PIL import Image

from heads.base.files import UserError, atomic_path
from heads.base.names import ATTENTIONS
from heads.config.trainings import HardConcrete
from heads.figures.style import FULL_WIDTH, colour_bar, first_seed, new_figure, panel, seed_note
from heads.tables.labels import MINUS
from heads.tables.picking import in_order, is_control, pruned_by_gates
from heads.tables.reading import Frames

Floats = NDArray[np.float64]
Strip = dict[int, Floats]
"""P(open) as [rows, heads] by update; rows are layers, grouped by kind of attention, both in rising order."""

LOG_ALPHAS = (-3.0, -1.0, 0.0, 1.0, 3.0)
FINENESS = 400
MASSES = {"P(0)": "#D55E00", "P(between)": "#DDDDDD", "P(1)": "#0072B2"}
MARGIN = 1.0

STILLS = 4
FRAMES = 30
FRAME_MILLISECONDS, LAST_FRAME_MILLISECONDS = 150, 2500
MOST_INCHES = 0.12
ANIMATION_DPI = 140
GIF_COLOURS = 128
BAR_LABEL = "P(gate is open)"
TYPE_LABELS = {"enc_self": "encoder\nself", "dec_self": "decoder\nself", "dec_enc": "decoder-\nencoder"}


def masses(log_alpha: Floats, shape: HardConcrete) -> tuple[Floats, Floats]:
    """P(gate = 0) and P(gate = 1): how likely the stretched variable is below 0 or above 1 (Louizos et al. 2018)."""
    return _below(np.zeros(()), log_alpha, shape), 1 - _below(np.ones(()), log_alpha, shape)


def density(gate: Floats, log_alpha: float, shape: HardConcrete) -> Floats:
    """Density of a gate strictly between 0 and 1; its integral is 1 minus the two masses."""
    inner = (gate - shape.low) / (shape.high - shape.low)
    chance = _below(gate, np.array(log_alpha), shape)
    slope = shape.temperature / (inner * (1 - inner)) / (shape.high - shape.low)
    return np.asarray(slope * chance * (1 - chance))


def _below(gate: Floats, log_alpha: Floats, shape: HardConcrete) -> Floats:
    """P(the stretched variable is below `gate`), a logistic distribution in its logit."""
    logit = np.log((gate - shape.low) / (shape.high - gate))
    return np.asarray(1 / (1 + np.exp(log_alpha - shape.temperature * logit)))


def hard_concrete(frames: Frames, shape: HardConcrete, experiment: str) -> Figure:
    """A gate's density and its masses at 0 and 1 for several log alpha, and where trained gates ended up.

    Temperature and limits are those of the settings. The gates are those of both scopes that `pruned_by_gates` selects;
    with several seeds, the first is drawn and the title says so.
    """
    trained = pruned_by_gates(first_seed(frames["heads.tsv"]))["log_alpha"].to_numpy(float)
    title = f"Hard-concrete gates, experiment “{experiment}”{seed_note(frames['heads.tsv'])}"
    figure = plt.figure(figsize=(FULL_WIDTH, 2.9))
    figure.suptitle(title, x=0.01, ha="left")
    left, right = np.ravel(figure.subfigures(1, 2, width_ratios=[1.35, 1], squeeze=False))
    limits = f"(a) temperature {shape.temperature:g}, from {shape.low:g} to {shape.high:g}".replace("-", MINUS)
    # Above all three axes: as the title of the first, it would push the others aside.
    left.suptitle(limits, x=0.03, ha="left", fontsize=plt.rcParams["axes.titlesize"], fontweight="normal")
    _distributions(left.subplots(1, 3, width_ratios=[1, 3.2, 1]), shape)
    above, below = right.subplots(2, 1, height_ratios=[1, 1.7], sharex=True)
    _ended(above, below, trained, shape)
    return figure


def _distributions(axes: Any, shape: HardConcrete) -> None:
    zero, middle, one = axes
    colours = sns.color_palette("viridis", n_colors=len(LOG_ALPHAS))
    gates = (np.arange(FINENESS) + 0.5) / FINENESS
    ends = masses(np.array(LOG_ALPHAS), shape)
    for each, mass, name in zip((zero, one), ends, ("0", "1"), strict=True):
        each.bar(range(len(LOG_ALPHAS)), mass, color=colours, width=0.85)
        each.set(xticks=[], ylim=(0, 1), xlabel=f"gate = {name}")
        each.grid(visible=False, axis="x")
    for log_alpha, colour in zip(LOG_ALPHAS, colours, strict=True):
        label = f"log α = {log_alpha:g}".replace("-", MINUS)
        middle.plot(gates, density(gates, log_alpha, shape), color=colour, label=label)
    middle.set(xlim=(0, 1), ylim=(0, None), xlabel="0 < gate < 1")
    middle.set_ylabel("density", labelpad=1)
    middle.legend(loc="upper center", fontsize=5.5)
    zero.set_ylabel("probability")


def _ended(above: Axes, below: Axes, trained: Floats, shape: HardConcrete) -> None:
    seen = np.array([*trained, *LOG_ALPHAS, shape.log_alpha_init])
    log_alpha = np.linspace(seen.min() - MARGIN, seen.max() + MARGIN, FINENESS)
    zero, one = masses(log_alpha, shape)
    below.stackplot(log_alpha, zero, 1 - zero - one, one, colors=list(MASSES.values()), labels=list(MASSES))
    above.hist(trained, bins=np.linspace(log_alpha[0], log_alpha[-1], 41).tolist(), color="#444444")
    for each in (above, below):
        each.axvline(shape.log_alpha_init, color="black", linewidth=0.8, linestyle="--", label="initial value")
        each.grid(visible=False)
    above.set_ylabel("gates")
    panel(above, "b", f"where {len(trained)} trained gates ended")
    below.set(xlim=(log_alpha[0], log_alpha[-1]), ylim=(0, 1), xlabel="log α", ylabel="probability")
    below.legend(loc="center left", fontsize=5.5, frameon=True, framealpha=0.8, edgecolor="none")


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


def at(strip: Strip, update: int) -> Floats:
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


def _draw(axes: Axes, values: Floats, gates: pd.DataFrame) -> AxesImage:
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

"""Shared by all figures: sizes, colours, heat maps, and files that are reproducible byte for byte."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import Collection
from matplotlib.figure import Figure, SubFigure
from numpy.typing import NDArray

from heads.base.files import atomic_path
from heads.base.names import ACCURACY, NO_TREES
from heads.tables.labels import bleu_name
from heads.tables.reading import SCORED, Frames

STYLE = Path(__file__).parents[2] / "report" / "style.mplstyle"
FULL_WIDTH = 6.3
"""Inches across both columns of a paper."""

TYPE_COLOURS = {"enc_self": "#0072B2", "dec_self": "#D55E00", "dec_enc": "#009E73"}
TYPE_MARKERS = {"enc_self": "o", "dec_self": "s", "dec_enc": "^"}
FUNCTION_COLOURS = {
    "positional": "#0072B2",
    "positional_and_syntactic": "#56B4E9",
    "syntactic": "#009E73",
    "rare": "#E69F00",
    "other": "#DDDDDD",
}
FUNCTION_LABELS = {
    "positional": "positional",
    "positional_and_syntactic": "positional and syntactic",
    "syntactic": "syntactic",
    "rare": "rare words",
    "other": "none of these",
}
OURS, PAPER_COLOURS = "#000000", {"WMT": "#0072B2", "OpenSubtitles": "#E69F00"}
PAPER_MARKERS = {"WMT": "s", "OpenSubtitles": "^"}
HALO = [patheffects.withStroke(linewidth=1.4, foreground="white")]
"""Keeps small text readable where a line runs through it."""


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the project's style, and close all figures at the end."""
    with plt.style.context(STYLE):
        try:
            yield
        finally:
            plt.close("all")


def new_figure(height: float, title: str, **grid: object) -> tuple[Figure, NDArray[np.object_]]:
    """A page-wide figure with a title, and its two-dimensional array of axes; `grid` as for `plt.subplots`."""
    figure, axes = plt.subplots(figsize=(FULL_WIDTH, height), squeeze=False, **grid)  # type: ignore[call-overload]
    figure.suptitle(title, x=0.01, ha="left")
    return figure, axes


def save(figure: Figure, pdf: Path, png: Path) -> None:
    """Write both files without dates, so that the same figure gives the same bytes."""
    no_dates = {"CreationDate": None, "Creator": None, "Producer": None}
    with atomic_path(pdf) as temporary:
        figure.savefig(temporary, format="pdf", metadata=no_dates)
    with atomic_path(png) as temporary:
        figure.savefig(temporary, format="png", metadata={"Software": None})


def heat_map(axes: Axes, values: NDArray[np.float64], *, limits: tuple[float, float], colours: str) -> Collection:
    """Draw layers (first at the bottom) by heads as coloured cells, and number both; return the cells."""
    drawn = coloured_cells(axes, values, limits=limits, colours=colours)
    number_layers(axes, len(values))
    axes.set_xticks(np.arange(values.shape[1]) + 0.5, [str(head + 1) for head in range(values.shape[1])])
    return drawn


def coloured_cells(axes: Axes, values: NDArray[np.float64], *, limits: tuple[float, float], colours: str) -> Collection:
    """Draw a matrix as coloured cells, the first row at the bottom and cells without a number left empty.

    seaborn's heat map draws the whole figure each time, to see whether labels overlap: nine seconds for thirty maps.
    """
    axes.spines[:].set_visible(False)
    axes.set(xlim=(0, values.shape[1]), ylim=(0, values.shape[0]))
    style: dict[str, Any] = {"cmap": colours, "linewidths": 0.4, "edgecolor": "white"}
    return axes.pcolormesh(np.ma.masked_invalid(values), vmin=limits[0], vmax=limits[1], **style)


def colour_bar(figure: Figure, cells: ScalarMappable, axes: Sequence[Axes], label: str, *, aspect: float) -> None:
    """Draw a frameless colour bar to the right of all `axes`; `aspect` is its length divided by its width."""
    bar = figure.colorbar(cells, ax=list(axes), label=label, shrink=0.9, aspect=aspect, pad=0.02)
    bar.outline.set_visible(False)


def number_layers(axes: Axes, layers: int) -> None:
    """Number layers from 1 at the bottom."""
    axes.set_ylim(0, layers)
    axes.set_yticks(np.arange(layers) + 0.5, [str(layer + 1) for layer in range(layers)], rotation=0)
    axes.tick_params(length=0)
    axes.grid(visible=False)


def matrix(frame: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """One column of a frame with a row for each head, as [layers, heads]."""
    return np.asarray(frame.pivot(index="layer", columns="head", values=column).to_numpy(float))


def first_seed(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the smallest seed."""
    return frame[frame["seed"] == frame["seed"].min()]


def score_name(frames: Frames) -> str:
    """The name of the models' score in figures."""
    scores = frames[SCORED]
    if (scores["metric"] == ACCURACY).any():
        return "accuracy (%)"
    return bleu_name(scores)


def seed_note(frame: pd.DataFrame) -> str:
    """The note in the title of a figure that shows only the first of several seeds."""
    seeds = frame["seed"].nunique()
    return f", first of {seeds} seeds" if seeds > 1 else ""


def trees_note(roles: pd.DataFrame) -> str:
    """The note in the title of a figure of functions whose heads were measured on sentences without trees."""
    return ", none measured as syntactic" if (roles["trees"] == NO_TREES).any() else ""


def spread_note(frame: pd.DataFrame) -> str:
    """The note in the title of a figure that shows the mean and spread of several seeds."""
    seeds = frame["seed"].nunique()
    return f", {seeds} seeds ± sd" if seeds > 1 else ""


def over_seeds(points: pd.DataFrame, columns: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean and sample standard deviation over seeds, indexed by `target`; the deviation of a single seed is 0."""
    by_target = points.groupby("target", sort=False)[list(columns)]
    return by_target.mean(), by_target.std(ddof=1).fillna(0)


def mean_line(axes: Axes, points: pd.DataFrame, x: str, y: str, **style: Any) -> None:
    """Draw a line from left to right through the mean over seeds of each `target`, with single seeds pale.

    Error bars are one standard deviation in x and in y. style: of the line, with `color` and `marker`.
    """
    mean, spread = over_seeds(points.dropna(subset=[x, y]), [x, y])
    drawn = mean.sort_values(x, kind="stable")
    axes.plot(drawn[x], drawn[y], zorder=3, **style)
    if points["seed"].nunique() > 1:
        bars = {"elinewidth": 0.7, "capsize": 1.5, "capthick": 0.7, "ecolor": style["color"]}
        axes.errorbar(mean[x], mean[y], xerr=spread[x], yerr=spread[y], linestyle="none", **bars)
        pale = {"color": style["color"], "marker": style["marker"], "alpha": 0.3, "markeredgewidth": 0}
        axes.plot(points[x], points[y], linestyle="none", markersize=2.5, **pale)


def panel(axes: Axes, letter: str, title: str) -> None:
    """Set the title of a panel, with its letter: (a), (b) and so on."""
    axes.set_title(f"({letter}) {title}")


def none_here(axes: Axes, said: str = "the model has none") -> None:
    """Write in a panel why it is empty, such as that the model has no attention of this kind."""
    axes.text(0.5, 0.5, said, ha="center", va="center", transform=axes.transAxes)
    axes.set(xticks=[], yticks=[])


def shared_legend(figure: Figure | SubFigure, axes: Sequence[Axes], columns: int) -> None:
    """Draw one legend below all panels, with each label once."""
    found = {label: handle for each in axes for handle, label in zip(*each.get_legend_handles_labels(), strict=True)}
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns)

"""Relevance and confidence of each head, and functions of encoder heads (Voita et al., Figs 1 and 2)."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from heads.base.names import ATTENTION_LABELS, ATTENTIONS
from heads.figures.style import (
    FUNCTION_COLOURS,
    FUNCTION_LABELS,
    colour_bar,
    first_seed,
    heat_map,
    matrix,
    new_figure,
    number_layers,
    panel,
    seed_note,
)
from heads.tables.labels import function_label, reading_label, rule_label
from heads.tables.picking import first_of
from heads.tables.reading import Frames
from heads.tables.relevance import SHARES, is_shown
from heads.tables.roles import FUNCTIONS
from heads.tables.roles import head_functions as functions_of_heads

MEASURES = (("lrp.tsv", "relevance_absolute", "Blues"), ("confidence.tsv", "confidence", "Oranges"))
SIGNED = "RdBu_r"
"""Colours for values that may be negative, white at zero."""


def importance_order(relevance: NDArray[np.float64]) -> NDArray[np.intp]:
    """Heads of each layer [layers, heads] from the most to the least relevant; ties are ordered by number."""
    return np.argsort(-relevance, axis=1, kind="stable")


def head_functions(frames: Frames, experiment: str) -> Figure:
    """Relevance, confidence and functions of the unpruned model's encoder heads, sorted by relevance.

    Relevance is the absolute share by the first rule in `lrp.tsv`, since few steps dominate the mean of signed shares.
    Roles are those on the first trees. With several seeds, the first is drawn and the title says so.
    """
    only = {name: first_seed(frame) for name, frame in frames.items()}
    only |= {name: first_of(only[name], column) for name, column in (("lrp.tsv", "rule"), ("roles.tsv", "trees"))}
    labels = {"relevance_absolute": f"{rule_label(only['lrp.tsv']['rule'].iloc[0])}, absolute"}
    labels["confidence"] = "confidence"
    encoder = {name: only[name][only[name]["attention"] == "enc_self"] for name, _, _ in MEASURES}
    values = {column: matrix(encoder[name], column) for name, column, _ in MEASURES}
    order = importance_order(values["relevance_absolute"])
    layers, heads = order.shape
    title = f"Encoder heads of the unpruned model, experiment “{experiment}”{seed_note(frames['lrp.tsv'])}"
    figure, axes = new_figure(0.9 + 0.24 * max(layers, 4), title, ncols=3, gridspec_kw={"width_ratios": [1, 1, 1.25]})
    for each, letter, (_, column, colours) in zip(axes[0], "ab", MEASURES, strict=False):
        ordered = np.take_along_axis(values[column], order, axis=1)
        cells = heat_map(each, ordered, limits=_limits(column, values[column]), colours=colours)
        colour_bar(figure, cells, [each], "", aspect=18)
        panel(each, letter, labels[column])
    _functions_panel(axes[0, 2], only, order)
    panel(axes[0, 2], "c", "functions; small: head number")
    for each in axes[0]:
        each.set_xticks(np.arange(heads) + 0.5, [str(rank + 1) for rank in range(heads)], rotation=0)
        each.set_xlabel("rank in its layer by relevance")
    axes[0, 0].set_ylabel("layer")
    found = set(functions_of_heads(only)["function"])
    patches = [Patch(color=FUNCTION_COLOURS[name], label=FUNCTION_LABELS[name]) for name in FUNCTIONS if name in found]
    figure.legend(handles=patches, loc="outside lower right", ncols=len(patches))
    return figure


def _functions_panel(axes: Axes, frames: Frames, order: NDArray[np.intp]) -> None:
    function = functions_of_heads(frames).set_index(["layer", "head"])["function"]
    roles = dict(list(frames["roles.tsv"].groupby(["layer", "head"])))
    layers, heads = order.shape
    for (layer, rank), head in np.ndenumerate(order):
        name = function[layer, head]
        axes.add_patch(Rectangle((rank, layer), 1, 1, facecolor=FUNCTION_COLOURS[name], edgecolor="white"))
        text = function_label(roles[layer, head]) if (layer, head) in roles else ""
        colour = "white" if name in ("positional", "syntactic") else "black"
        centred: dict[str, Any] = {"ha": "center", "va": "center", "linespacing": 0.95, "color": colour}
        axes.text(rank + 0.5, layer + 0.45, text, fontsize=min(5, 34 / heads), **centred)
        axes.text(rank + 0.96, layer + 0.95, str(head + 1), ha="right", va="top", fontsize=3.5, color=colour)
    axes.set_xlim(0, heads)
    axes.spines[:].set_visible(False)
    number_layers(axes, layers)


def relevance_all(frames: Frames, experiment: str) -> Figure:
    """Relevance and confidence of all heads of the unpruned model, with a column for each kind of attention.

    There is a row for each share of the paper's rule, one for the absolute share of each other rule, and one for
    confidence. With several seeds, the first is drawn and the title says so.
    """
    lrp, confidence = first_seed(frames["lrp.tsv"]), first_seed(frames["confidence.tsv"])
    rows = [
        (reading_label(f"{rule}, {name}"), found, share, MEASURES[0][2] if share == MEASURES[0][1] else SIGNED)
        for rule, found in lrp.groupby("rule", sort=False)
        for share, name in SHARES.items()
        if is_shown(f"{rule}, {name}")
    ]
    rows.append(("confidence", confidence, *MEASURES[1][1:]))
    title = f"All heads of the unpruned model, experiment “{experiment}”{seed_note(frames['lrp.tsv'])}"
    height = 0.8 + (0.3 + 0.14 * max(int(lrp["layer"].max()) + 1, 3)) * len(rows)
    depths = confidence.groupby("attention")["layer"].max()
    kinds = [kind for kind in ATTENTIONS if kind in depths]
    shared = {"sharex": True, "sharey": depths.nunique() == 1}
    figure, axes = new_figure(height, title, nrows=len(rows), ncols=len(kinds), **shared)
    for row, (label, measured, column, colours) in zip(axes, rows, strict=True):
        limits = _limits(column, measured[column].to_numpy(float))
        for each, attention in zip(row, kinds, strict=True):
            values = matrix(measured[measured["attention"] == attention], column)
            cells = heat_map(each, values, limits=limits, colours=colours)
        # A label runs along its colour bar, so it is wrapped to the length of the bar.
        colour_bar(figure, cells, list(row), fill(label, 13), aspect=8)
    for each, letter, attention in zip(axes[0], "abc", kinds, strict=False):
        panel(each, letter, ATTENTION_LABELS[attention])
    for each in axes[:, 0]:
        each.set_ylabel("layer")
    for each in axes[-1]:
        each.set_xlabel("head")
    return figure


def _limits(column: str, values: NDArray[np.float64]) -> tuple[float, float]:
    if column == "confidence":
        return (0.0, 1.0)
    most = float(np.abs(values).max())
    return (0.0 if column == MEASURES[0][1] else -most, most)

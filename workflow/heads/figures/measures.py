"""Agreement between the measures of a head, and relevance against confidence (Voita et al., sec. 4)."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from heads.base.bootstrap import SIGNIFICANT
from heads.base.names import ATTENTION_LABELS, ATTENTIONS
from heads.figures.style import FULL_WIDTH, coloured_cells, first_seed, panel, score_name, seed_note, shared_legend
from heads.tables.head_measures import LABELS
from heads.tables.labels import MINUS, PREFIX, SIDE_BY_SIDE, reading_label, reading_of, relevance_columns, side_by_side
from heads.tables.measures import correlate, measure_names, measures_table
from heads.tables.reading import Frames

LAYER_MARKERS = "osD^vPX*"
RING: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": "black", "markeredgewidth": 0.7}


def measures(frames: Frames, experiment: str) -> Figure:
    """Rank correlations of encoder heads' measures, and relevance against confidence by kind of attention.

    Correlations below the diagonal are within layers, those above over all heads, with the readings of relevance that
    figures show. The scatter plots have a column for each reading in SIDE_BY_SIDE, see `heads.tables.labels`. With
    several seeds, the first is drawn and the title says so.
    """
    table = measures_table(frames)
    note = seed_note(table)
    table = first_seed(table)
    encoder = table[table["attention"] == "enc_self"]
    title = f"Do the measures of a head agree? Experiment “{experiment}”{note}"
    figure = plt.figure(figsize=(FULL_WIDTH, 7.6))
    figure.suptitle(title, x=0.01, ha="left")
    upper, lower = np.ravel(figure.subfigures(2, 1, height_ratios=[1.15, 1], squeeze=False))
    columns = relevance_columns(table)
    names = [name for name in measure_names(table) if encoder[name].notna().any()]
    heat = upper.subplots()
    _correlations(upper, heat, encoder, {name: _label(name).replace("BLEU", score_name(frames)) for name in names})
    panel(heat, "a", "rank correlations of encoder heads")
    readings = side_by_side(columns)
    kinds = [attention for attention in ATTENTIONS if (table["attention"] == attention).any()]
    scatters = lower.subplots(len(kinds), len(readings), sharex=True, squeeze=False)
    for row, attention in zip(scatters, kinds, strict=True):
        for each, reading in zip(row, readings, strict=True):
            _scatter(each, table[table["attention"] == attention], columns[reading])
        row[0].set_ylabel(ATTENTION_LABELS[attention].replace(" ", "\n"))
    for each, letter, reading in zip(scatters[0], "bcde", readings, strict=False):
        panel(each, letter, SIDE_BY_SIDE.get(reading, reading))
    for each in scatters[-1]:
        each.set_xlabel("confidence")
    lower.supylabel("relevance", fontsize=8)
    shared_legend(lower, list(np.ravel(scatters)), columns=6)
    return figure


def _label(name: str) -> str:
    if not name.startswith(PREFIX):
        return LABELS[name]
    return reading_label(reading_of(name)).replace("LRP, ", "LRP ")


def _correlations(figure: SubFigure, axes: Axes, encoder: pd.DataFrame, labels: Mapping[str, str]) -> None:
    names = list(labels)
    place = {name: number for number, name in enumerate(names)}
    values = np.full((len(names), len(names)), np.nan)
    for row in pd.DataFrame(correlate(encoder, names)).to_dict("records"):
        a, b = place[str(row["measure_a"])], place[str(row["measure_b"])]
        values[b, a], values[a, b] = row["rho_within_layers"], row["rho"]
        size = min(4.5, 68 / len(names))
        _write(axes, (a, b), row["rho_within_layers"], row["p_value_within_layers"], size)
        _write(axes, (b, a), row["rho"], row["p_value"], size)
    drawn = coloured_cells(axes, values, limits=(-1.0, 1.0), colours="RdBu_r")
    axes.invert_yaxis()
    axes.set_aspect("equal")
    bar = figure.colorbar(drawn, ax=axes, label="Spearman’s ρ", shrink=0.6, aspect=28, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_ticks([-1, -0.5, 0, 0.5, 1])
    ticks = np.arange(len(names)) + 0.5
    axes.set_xticks(ticks, labels.values(), rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(ticks, labels.values(), rotation=0)
    axes.tick_params(length=0, labelsize=6)
    axes.grid(visible=False)
    axes.set_xlabel(f"below the diagonal: within layers; above: over all layers; bold: p < {SIGNIFICANT}")


def _write(axes: Axes, place: tuple[int, int], rho: float, p: float, size: float) -> None:
    if np.isnan(rho):
        return
    text = f"{rho:.2f}".replace("1.00", "1").replace("0.", ".").replace("-", MINUS)
    weight = "bold" if p < SIGNIFICANT else "normal"
    colour = "white" if abs(rho) > 0.6 else "black"
    x, y = place
    axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=size, color=colour, fontweight=weight)


def _scatter(axes: Axes, heads: pd.DataFrame, column: str) -> None:
    layers = int(heads["layer"].max()) + 1
    colours = sns.color_palette("viridis", n_colors=layers + 1)
    for layer, rows in heads.groupby("layer"):
        marker = LAYER_MARKERS[int(layer) % len(LAYER_MARKERS)]
        axes.plot(rows["confidence"], rows[column], marker, color=colours[layer], label=f"layer {layer + 1}")
        top = rows.loc[rows[column].idxmax()]
        label = "most relevant" if layer == 0 else None
        axes.plot(top["confidence"], top[column], "o", markersize=8, label=label, **RING)
    axes.axhline(1 / heads.groupby("layer").size().max(), color="#666666", linewidth=0.7, zorder=1)
    axes.margins(x=0.08, y=0.15)

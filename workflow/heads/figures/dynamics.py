"""How confidence and roles of encoder heads develop during training."""

from __future__ import annotations

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heads.figures.style import FUNCTION_COLOURS, OURS, first_seed, new_figure, panel, seed_note
from heads.tables.dynamics import MEAN, dynamics_table
from heads.tables.labels import relation_label
from heads.tables.reading import Frames

POSITIONAL_SHARE, SYNTACTIC_MARGIN = 0.9, 0.1
"""The paper's thresholds (Voita et al. 2019, secs 5.1 and 5.2)."""


def dynamics(frames: Frames, experiment: str) -> Figure:
    """The best encoder head on each measure at every checkpoint, with the thresholds for a role."""
    rows = first_seed(dynamics_table(frames))
    title = f"When heads acquire their roles, experiment “{experiment}”{seed_note(frames['dynamics.tsv'])}"
    figure, (axes,) = new_figure(3.1, title, ncols=3)
    confidence = rows[rows["role"] == "confidence"]
    for name, label, style in (("", "most confident head", "-"), (MEAN, "mean of all heads", "--")):
        _line(axes[0], confidence[confidence["name"] == name], label=label, color=OURS, linestyle=style)
    for role, label, function, style in (
        ("positional", "one offset, in subwords", "positional", "-"),
        ("positional_words", "one offset, in words", "positional", "--"),
        ("rare", "rare words", "rare", "-"),
    ):
        _line(axes[1], rows[rows["role"] == role], label=label, color=FUNCTION_COLOURS[function], linestyle=style)
    syntactic = rows[rows["role"] == "syntactic"]
    names = list(dict.fromkeys(syntactic["name"]))
    for name, colour in zip(names, sns.color_palette("colorblind", len(names)), strict=True):
        own, label = syntactic[syntactic["name"] == name], relation_label(name, short=True)
        _line(axes[2], own, y="above_baseline", label=label, color=colour)
    for each, threshold in ((axes[1], POSITIONAL_SHARE), (axes[2], SYNTACTIC_MARGIN)):
        each.axhline(threshold, color="#888888", linewidth=0.8, linestyle=":")
    titles = ("confidence", "where heads look", "dependencies")
    labels = ("mean maximum weight", "share of cases, best head", "best head − best offset")
    for each, letter, title, label in zip(axes, "abc", titles, labels, strict=True):
        each.set(xlabel="update", ylabel=label)
        each.legend(fontsize=5, loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=1 + (letter == "c"))
        panel(each, letter, title)
    for each in axes[:2]:
        each.set_ylim(0, 1)
    return figure


def _line(axes: Axes, rows: pd.DataFrame, y: str = "accuracy", **style: Any) -> None:
    drawn = rows.sort_values(["update", "finished"], kind="stable")
    axes.plot(drawn["update"], drawn[y], marker="o", markersize=2.5, **style)

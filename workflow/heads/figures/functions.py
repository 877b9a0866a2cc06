"""Functions of the encoder heads left after pruning (Voita et al., Fig 8), and how they come about in training."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from heads.base.names import MEAN
from heads.figures.style import (
    FUNCTION_COLOURS,
    FUNCTION_LABELS,
    OURS,
    first_seed,
    new_figure,
    panel,
    seed_note,
    trees_note,
)
from heads.tables.labels import relation_label
from heads.tables.picking import pruned_by_gates
from heads.tables.reading import RUN_COLUMNS, Frames
from heads.tables.roles import FUNCTIONS, HEAD_COLUMNS, count_functions, dynamics_table, head_functions, role_drift

BAR_WIDTH = 0.8
NEW_HATCH = "/////"
POSITIONAL_SHARE, SYNTACTIC_MARGIN = 0.9, 0.1
"""The paper's thresholds (Voita et al. 2019, secs 5.1 and 5.2)."""


def functions_retained(frames: Frames, paper: pd.DataFrame, experiment: str) -> Figure:
    """Functions of encoder heads as stacked boxes: encoder pruned, the paper, all attention pruned, from scratch.

    Hatched boxes are heads with a role that they did not have in the unpruned model; a dot marks heads with several
    roles, relations or offsets. With several seeds, the first is drawn and the title says so.
    """
    only = {name: first_seed(frame) for name, frame in frames.items()}
    counts, heads = count_functions(only), boxes(only)
    note = trees_note(frames["roles.tsv"]) + seed_note(frames["model.json"])
    title = f"Functions of the encoder heads left by pruning, experiment “{experiment}”{note}"
    runs = [_panel_runs(counts, "pruned", ("enc_self",)), _panel_runs(counts, "pruned", ("all",))]
    runs.append(_panel_runs(counts, "scratch", ("enc_self", "all")))
    theirs = paper.pivot(index="enc_self", columns="function", values="heads").sort_index(ascending=False)
    most = max(len(models) for models in runs)
    figure, axes = new_figure(4.4, title, nrows=2, ncols=2, gridspec_kw={"width_ratios": [1, 1.2]})
    places = (axes[0, 0], axes[1, 0], axes[1, 1])
    titles = ("a encoder pruned", "c all attention pruned", "d the heads left, trained from scratch")
    for each, text, models in zip(places, titles, runs, strict=True):
        _ours(each, models, heads)
        panel(each, *text.split(" ", maxsplit=1))
        driven = (models["keep"] != "").any()
        each.set_xlabel(f"encoder heads left, {'of how many in all' if driven else 'λ of the run'}")
        each.set_xlim(-0.6, most - 0.4)
        each.tick_params(axis="x", labelsize=min(6.5, 50 / most))
        each.set_ylim(0, 1.05 * counts["of"].max())
    for each in axes[:, 0]:
        each.set_ylabel("encoder heads")
    stacked(axes[0, 1], [_paper_boxes(row) for row in theirs.to_dict("records")], [str(size) for size in theirs.index])
    axes[0, 1].set_xlabel("encoder heads left")
    panel(axes[0, 1], "b", "the paper, OpenSubtitles, encoder (Fig 8)")
    figure.legend(handles=_handles(), loc="outside lower center", ncols=3)
    return figure


def boxes(frames: Frames) -> pd.DataFrame:
    """Every live encoder head in stacking order: HEAD_COLUMNS, `function`, `several` and `new`."""
    keys = list(HEAD_COLUMNS)
    drift = role_drift(frames).set_index(keys)["new_roles"]
    heads = head_functions(frames)
    new = drift.reindex(pd.MultiIndex.from_frame(heads[keys]), fill_value=0).to_numpy() > 0
    heads = heads.assign(several=heads["held"] > 1, new=new, place=heads["function"].map(FUNCTIONS.index))
    return heads.sort_values(["place", "new", "several"], kind="stable")[[*keys, "function", "several", "new"]]


def _panel_runs(counts: pd.DataFrame, kind: str, scopes: Sequence[str]) -> pd.DataFrame:
    """The models of one panel from large to small, with the unpruned model before pruned ones."""
    models = pruned_by_gates(counts[(counts["kind"] == kind) & counts["scope"].isin(scopes)])
    models = models.sort_values("live", ascending=False, kind="stable")
    unpruned = counts[counts["kind"] == "baseline"].assign(target="full")
    return pd.concat([unpruned, models]) if kind == "pruned" else models


def _ours(axes: Axes, models: pd.DataFrame, heads: pd.DataFrame) -> None:
    keys = list(RUN_COLUMNS)
    bars = [heads[(heads[keys] == run[keys]).all(axis=1)] for _, run in models.iterrows()]
    targets = [target.removeprefix("λ ") for target in models["target"]]
    stacked(axes, bars, [f"{live}\n{target}" for live, target in zip(models["live"], targets, strict=True)])
    if not bars:
        axes.text(0.5, 0.5, "no such models", ha="center", va="center", transform=axes.transAxes)


def _paper_boxes(counts: dict[str, float]) -> pd.DataFrame:
    functions = [name for name in FUNCTIONS for _ in range(int(counts[name]))]
    return pd.DataFrame({"function": functions}).assign(several=False, new=False)


def stacked(axes: Axes, bars: Sequence[pd.DataFrame], ticks: Sequence[str]) -> None:
    """Draw a bar for each model with a box for each head; each bar is a frame with rows as from `boxes`."""
    tallest = max((len(bar) for bar in bars), default=1)
    dot: dict[str, Any] = {"marker": "o", "color": "black", "markersize": min(3, 70 / max(tallest, 1))}
    edge: dict[str, Any] = {"edgecolor": "white", "linewidth": min(0.4, 5 / max(tallest, 1))}
    for place, bar in enumerate(bars):
        for bottom, head in enumerate(bar.to_dict("records")):
            (patch,) = axes.bar(place, 1, BAR_WIDTH, bottom, color=FUNCTION_COLOURS[head["function"]], **edge)
            if head["new"]:
                patch.set(hatch=NEW_HATCH, hatch_linewidth=0.7)
            if head["several"]:
                axes.plot(place, bottom + 0.5, markeredgecolor="white", markeredgewidth=edge["linewidth"], **dot)
    axes.set_xticks(range(len(ticks)), ticks, linespacing=1.1)
    axes.set_xlim(-0.6, max(len(ticks), 1) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.set_axisbelow(True)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(axis="x", length=0)


def _handles() -> list[Patch | Line2D]:
    functions = [Patch(color=FUNCTION_COLOURS[name], label=FUNCTION_LABELS[name]) for name in FUNCTIONS]
    hatched: dict[str, Any] = {"facecolor": "#888888", "edgecolor": "white", "hatch": NEW_HATCH}
    new = Patch(label="has a role that it lacked in the unpruned model", **hatched)
    dot: dict[str, Any] = {"marker": "o", "markersize": 3, "color": "black", "linestyle": ""}
    return [*functions, new, Line2D([], [], label="has several roles or relations", **dot)]


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
    if not names:
        axes[2].text(0.5, 0.5, "not measured", ha="center", va="center", transform=axes[2].transAxes)
    for each, threshold in ((axes[1], POSITIONAL_SHARE), (axes[2], SYNTACTIC_MARGIN)):
        each.axhline(threshold, color="#888888", linewidth=0.8, linestyle=":")
    titles = ("confidence", "where heads look", "dependencies")
    labels = ("mean maximum weight", "share of cases, best head", "best head − best offset")
    for each, letter, title, label in zip(axes, "abc", titles, labels, strict=True):
        each.set(xlabel="update", ylabel=label)
        if each.get_legend_handles_labels()[0]:
            each.legend(fontsize=5, loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=1 + (letter == "c"))
        panel(each, letter, title)
    for each in axes[:2]:
        each.set_ylim(0, 1)
    return figure


def _line(axes: Axes, rows: pd.DataFrame, y: str = "accuracy", **style: Any) -> None:
    drawn = rows.sort_values(["update", "finished"], kind="stable")
    axes.plot(drawn["update"], drawn[y], marker="o", markersize=2.5, **style)

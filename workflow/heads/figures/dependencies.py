"""Positions of dependents, and how well the best head finds them (Voita et al., Figs 3 and 4)."""

from typing import cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from heads.figures.style import HALO, PAPER_COLOURS, first_seed, new_figure, panel, seed_note, shared_legend
from heads.tables.labels import MINUS
from heads.tables.picking import first_of
from heads.tables.reading import Frames
from heads.tables.roles import dependencies_table

FARTHEST = 7
"""The largest distance shown, in words; dependents farther away are drawn there."""
PANELS_IN_ROW = 4
BEST, OTHERS = "#333333", "#B8B8B8"
OUR_COLOURS = ("#888888", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#333333")
DIRECTIONS = {
    "dependent-to-head": "from the dependent to its head",
    "head-to-dependent": "from the head to its dependent",
}
GROUP_WIDTH = 0.84
NO_ARCS = "no dependent of these relations"


def relative_positions(frames: Frames, paper: pd.DataFrame, experiment: str) -> Figure:
    """Share of each relation's dependents at each position relative to the head; the best fixed offset is dark.

    Uses the trees that decide on roles. Lines are the best fixed offsets of the paper's two corpora. With several
    seeds, the first is drawn; the trees are the same for all.
    """
    stand = first_of(first_seed(frames["positions.tsv"]), "trees")
    relations = list(dict.fromkeys(stand["relation"]))
    trees = f", {stand['trees'].iloc[0]} trees" if relations else ""
    title = f"Positions of dependents relative to their heads: experiment “{experiment}”{trees}"
    columns = min(PANELS_IN_ROW, max(1, len(relations)))
    rows = max(1, -(-len(relations) // columns))
    figure, axes = new_figure(0.7 + 1.5 * rows, title, nrows=rows, ncols=columns, sharey=True)
    panels = cast(list[Axes], list(axes.flat))
    for number, (each, relation) in enumerate(zip(panels, relations, strict=False)):
        _places(each, stand[stand["relation"] == relation])
        # The same in both directions.
        for corpus, share in paper[paper["relation"] == relation].groupby("corpus", sort=False)["baseline_percent"]:
            label = f"best fixed offset in the paper, {corpus}"
            each.axhline(float(share.iloc[0]), color=PAPER_COLOURS[str(corpus)], label=label)
        panel(each, "abcdefghijklmnopqrstuvwxyz"[number % 26], relation)
    for each in panels[len(relations) :]:
        each.set_axis_off()
    for row in axes:
        row[0].set_ylabel("% of dependents")
    if not relations:
        axes[0, 0].text(0, 0.5, NO_ARCS, transform=axes[0, 0].transAxes)
    else:
        for each in panels[max(0, len(relations) - columns) : len(relations)]:
            each.set_xlabel("words from the head")
        shared_legend(figure, panels, columns=3)
    return figure


def shares_at(stand: pd.DataFrame) -> tuple[dict[int, float], int]:
    """Percentage of one relation's dependents at each position, and the most frequent position.

    Positions beyond FARTHEST count as FARTHEST, except for the most frequent one; ties go to the first.
    """
    arcs = stand.set_index("position")["arcs"].sort_index()
    gathered = arcs.groupby(arcs.index.to_numpy().clip(-FARTHEST, FARTHEST)).sum()
    return {int(place): float(share) for place, share in (100 * gathered / arcs.sum()).items()}, int(arcs.idxmax())


def _places(axes: Axes, stand: pd.DataFrame) -> None:
    shares, best = shares_at(stand)
    at = int(np.clip(best, -FARTHEST, FARTHEST))
    colours = [BEST if place == at else OTHERS for place in shares]
    axes.bar(list(shares), list(shares.values()), width=0.8, color=colours)
    label = f"{100 * stand['arcs'].max() / stand['arcs'].sum():.0f}%"
    axes.text(at, shares[at] + 1.5, label, ha="center", fontsize=6, path_effects=HALO)
    axes.bar(at, 0, color=BEST, label="best fixed offset here")
    axes.set_xlim(-FARTHEST - 0.7, FARTHEST + 0.7)
    ticks = [-FARTHEST, -4, -2, 0, 2, 4, FARTHEST]
    ends = {-FARTHEST: f"≤{MINUS}{FARTHEST}", FARTHEST: f"≥{FARTHEST}"}
    axes.set_xticks(ticks, [ends.get(tick, str(tick).replace("-", MINUS)) for tick in ticks])
    axes.set_ylim(0, 100)
    axes.grid(visible=False, axis="x")


def dependency_scores(frames: Frames, paper: pd.DataFrame, experiment: str) -> Figure:
    """The best head's accuracy on each relation, in every experiment and on both corpora of the paper.

    One panel for each direction. The line across a bar is the best fixed offset. Our bars have the head's 95 %
    interval. With several seeds, the first is drawn and the title says so. experiment: the names of all.
    """
    found = scores(frames, paper)
    title = f"The best encoder head for each relation: {experiment} and the paper{seed_note(frames['roles.tsv'])}"
    figure, axes = new_figure(4.3, title, nrows=2, sharex=True, sharey=True)
    ours = [corpus for corpus in dict.fromkeys(found["corpus"]) if corpus not in PAPER_COLOURS]
    colours = {corpus: OUR_COLOURS[number % len(OUR_COLOURS)] for number, corpus in enumerate(ours)} | PAPER_COLOURS
    relations = list(dict.fromkeys(found["relation"]))
    for each, letter, (direction, words) in zip(axes[:, 0], "ab", DIRECTIONS.items(), strict=True):
        _bars(each, found[found["direction"] == direction], colours, relations)
        panel(each, letter, words)
        each.set_ylabel("accuracy, %")
    axes[1, 0].set_xticks(range(len(relations)), relations)
    handles: list[Patch | Line2D] = [
        Patch(color=colours[corpus], label=f"paper, {corpus}" if corpus in PAPER_COLOURS else corpus)
        for corpus in dict.fromkeys(found["corpus"])
    ]
    handles.append(Line2D([], [], color="black", linewidth=1.4, label="best fixed offset"))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 5))
    return figure


def scores(frames: Frames, paper: pd.DataFrame) -> pd.DataFrame:
    """A row for each corpus, relation and direction: `best`, `low`, `high` and `baseline` in percent, ours first.

    The corpus is the experiment's name, or one of PAPER_COLOURS in the paper's rows, which have no intervals.
    """
    table = dependencies_table(frames, paper)
    table = pd.concat([first_seed(rows) for _, rows in table.groupby("experiment", sort=False)])
    values = {name: f"{name}_percent" for name in ("best", "low", "high", "baseline")}
    keys = ["relation", "direction"]
    ours = table.rename(columns={column: name for name, column in values.items()} | {"experiment": "corpus"})
    theirs = paper.rename(columns={"best_percent": "best", "baseline_percent": "baseline"})
    theirs = theirs[theirs["relation"].isin(ours["relation"])].assign(low=np.nan, high=np.nan)
    columns = ["corpus", *keys, *values]
    return pd.concat([ours[columns].astype(dict.fromkeys(values, float)), theirs[columns]], ignore_index=True)


def _bars(axes: Axes, found: pd.DataFrame, colours: dict[str, str], relations: list[str]) -> None:
    corpora = list(dict.fromkeys(found["corpus"]))
    width = GROUP_WIDTH / len(corpora)
    for number, corpus in enumerate(corpora):
        rows = found[found["corpus"] == corpus]
        x = rows["relation"].map(relations.index) + (number - (len(corpora) - 1) / 2) * width
        axes.bar(x, rows["best"], width=0.92 * width, color=colours[corpus])
        reach = [rows["best"] - rows["low"], rows["high"] - rows["best"]]
        axes.errorbar(x, rows["best"], yerr=reach, fmt="none", ecolor="black", elinewidth=0.8, capsize=1.5, zorder=3)
        ends = [x - 0.5 * width, x + 0.5 * width]
        axes.hlines(rows["baseline"], *ends, color="black", linewidth=1.4, path_effects=HALO, zorder=2.5)
    axes.set(xlim=(-0.5, len(relations) - 0.5), ylim=(0, 100))
    axes.grid(visible=False, axis="x")
    axes.tick_params(axis="x", length=0)

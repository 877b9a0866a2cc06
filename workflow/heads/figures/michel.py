"""Heads masked one at a time and in increasing numbers (Michel et al. 2019, Figs 1 to 5)."""

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from heads.base.bootstrap import MICHEL_SIGNIFICANT
from heads.base.names import ACCURACY, ATTENTION_LABELS, ATTENTIONS, BLEU, HEAD
from heads.figures.style import (
    HALO,
    OURS,
    TYPE_COLOURS,
    TYPE_MARKERS,
    colour_bar,
    coloured_cells,
    first_seed,
    mean_line,
    new_figure,
    panel,
    score_name,
    seed_note,
    shared_legend,
    spread_note,
)
from heads.tables.michel import LEAST, with_unmasked
from heads.tables.reading import Frames

ORDER_STYLES: dict[str, dict[str, Any]] = {
    "example": {"label": "importance", "color": OURS, "marker": "o"},
    "ablation": {"label": "each head masked alone, dev", "color": "#D55E00", "marker": "s"},
    "ablation_oracle": {"label": "the same on test (oracle)", "color": "#E69F00", "marker": "D", "linestyle": "--"},
}
FORM_STYLES: dict[str, dict[str, Any]] = {
    "example": {"label": "absolute by sentence (the paper's)", "color": OURS, "marker": "o"},
    "token": {"label": "absolute by token", "color": "#0072B2", "marker": "^"},
    "batch": {"label": "absolute by batch", "color": "#009E73", "marker": "v"},
    "signed": {"label": "signed", "color": "#CC79A7", "marker": "X"},
}
FREE_PERCENT = {BLEU: 20, ACCURACY: 40}
"""Percent of heads that the paper masks without a noticeable loss, in its WMT model and BERT on MNLI (Fig 3)."""


def fig1(frames: Frames, paper: pd.DataFrame, experiment: str) -> Figure:
    """Histograms of the score change from masking each head alone, by kind of attention, beside the paper's Table 1.

    The paper has no numbers for single heads of BERT.
    """
    heads = first_seed(frames["ablation.tsv"])
    title = f"One head masked at a time, experiment “{experiment}”{seed_note(frames['ablation.tsv'])}"
    paper = paper[paper["metric"].isin(heads["metric"])]
    kinds = [kind for kind in ATTENTIONS if len(paper) or (heads["attention"] == kind).any()]
    widths = [*(1.0 for _ in kinds), *([1.15] if len(paper) else [])]
    figure, (axes,) = new_figure(2.1, title, ncols=len(widths), width_ratios=widths)
    bins, own = bins_of(heads["score_change"]), axes[: len(kinds)]
    for each, letter, kind in zip(own, "abc", kinds, strict=False):
        rows = heads[heads["attention"] == kind]
        histogram(each, rows["score_change"], rows["p_value"] < MICHEL_SIGNIFICANT, bins, TYPE_COLOURS[kind])
        panel(each, letter, ATTENTION_LABELS[kind].removesuffix("-attention").removesuffix(" attention"))
    most = max(each.get_ylim()[1] for each in own)
    for each in own:
        each.set_ylim(0, most)
    if len(paper):
        change = paper["score_change"]
        histogram(axes[-1], change, paper["significant"] == 1, bins_of(change), TYPE_COLOURS["enc_self"])
        panel(axes[-1], "d", "paper, encoder self")
    axes[0].set_ylabel("heads")
    figure.supxlabel(f"{score_name(frames)} change without the head; dark: p < {MICHEL_SIGNIFICANT}", fontsize=7)
    return figure


def bins_of(change: pd.Series) -> list[float]:
    """Edges of about 15 bins of a round width, one of them at zero."""
    low, high = min(float(change.min()), 0.0), max(float(change.max()), 0.0)
    edges = MaxNLocator(nbins=15, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(edge) for edge in edges]


def histogram(axes: Axes, change: pd.Series, significant: pd.Series, bins: list[float], colour: str) -> None:
    """Draw a histogram of heads by their score change, the significant ones dark and counted."""
    parts = [change[significant], change[~significant]]
    style: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.4}
    axes.hist(parts, bins=bins, stacked=True, color=[colour, sns.light_palette(colour, 4)[1]], **style)
    axes.axvline(0, color="#666666", linewidth=0.9)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    note = f"{int(significant.sum())} of {len(change)}\nsignificant"
    axes.text(0.04, 0.96, note, transform=axes.transAxes, ha="left", va="top", fontsize=6, path_effects=HALO)


def fig2(frames: Frames, experiment: str) -> Figure:
    """Score change without each head, out of domain (or else on dev) against test; beside it, the same near zero."""
    change = f"{score_name(frames)} change without the head"
    keys = ["seed", *HEAD]
    other = frames["ablation.out_of_domain.tsv"]
    compared = frames["ablation.dev.tsv"] if other.empty else other
    where, name = ("on other sentences", "dev") if other.empty else ("in another domain", "other domain")
    both = frames["ablation.tsv"][[*keys, "score_change"]].merge(
        compared[[*keys, "score_change"]], on=keys, suffixes=("_test", "_compared")
    )
    heads = first_seed(both)
    title = f"Does a head matter as much {where}? Experiment “{experiment}”{seed_note(both)}"
    figure, (axes,) = new_figure(2.9, title, ncols=2)
    values = heads[["score_change_compared", "score_change_test"]].to_numpy(float)
    reach = max(1.5 * float(np.median(np.abs(values))), 1e-6)
    near = heads[(np.abs(values) <= reach).all(axis=1)]
    for each, drawn in zip(axes, (heads, near), strict=True):
        for kind, rows in drawn.groupby("attention", sort=False):
            label = f"{ATTENTION_LABELS[str(kind)]}, r = {_pearson(rows)}"
            style: dict[str, Any] = {"color": TYPE_COLOURS[str(kind)], "label": label, "alpha": 0.85}
            each.plot(rows["score_change_compared"], rows["score_change_test"], TYPE_MARKERS[str(kind)], **style)
        each.axline((0, 0), slope=1, color="#666666", linewidth=0.9)
        each.xaxis.set_major_locator(MaxNLocator(nbins=5))
        each.set(xlabel=f"{change}, {name}", ylabel=f"{change}, test")
    panel(axes[0], "a", f"all {len(heads)} heads, r = {_pearson(heads)}")
    panel(axes[1], "b", f"the {len(near)} heads near zero, r = {_pearson(near)}")
    shared_legend(figure, [axes[0]], columns=3)
    return figure


def _pearson(heads: pd.DataFrame) -> str:
    first, second = heads["score_change_compared"], heads["score_change_test"]
    if len(heads) < 3 or not first.std() or not second.std():
        return "–"
    return f"{first.corr(second):.2f}"


def fig3(frames: Frames, experiment: str) -> Figure:
    """The score as more and more heads are masked, by importance and by ablation; beside it, forms of importance."""
    rows = _walks(frames["masking_curve.tsv"], ["order", "attention"])
    rows = rows[rows["attention"] == "all"]
    title = f"Masking heads in order of a score, experiment “{experiment}”{spread_note(rows)}"
    figure, (axes,) = new_figure(3.2, title, ncols=2, sharey=True)
    free = FREE_PERCENT[ACCURACY if (rows["metric"] == ACCURACY).any() else BLEU]
    for each, styles in zip(axes, (ORDER_STYLES, FORM_STYLES), strict=True):
        _random(each, rows)
        for order, style in styles.items():
            mean_line(each, rows[rows["order"] == order], "masked_percent", "score", **style)
        each.axvline(free, color="#666666", linewidth=0.9, linestyle=":")
        across = each.get_xaxis_transform()
        each.text(free + 1, 0.02, "no loss in the paper", fontsize=5.5, path_effects=HALO, transform=across)
        _percent(each, "heads masked, of all")
    axes[0].set_ylabel(f"{score_name(frames)}, test set")
    panel(axes[0], "a", "by which score")
    panel(axes[1], "b", "by which form of importance")
    shared_legend(figure, list(axes), columns=4)
    return figure


def fig4(frames: Frames, experiment: str) -> Figure:
    """The score as heads of one kind of attention are masked by importance, against their share and their number."""
    rows = _walks(frames["masking_curve.tsv"], ["order", "attention"])
    rows = rows[rows["order"] == rows["order"].iloc[0]]
    title = f"Masking heads of one kind of attention, experiment “{experiment}”{spread_note(rows)}"
    figure, (axes,) = new_figure(2.7, title, ncols=2, sharey=True)
    for each, x in zip(axes, ("masked_percent", "masked"), strict=True):
        for kind in ATTENTIONS:
            style = {"color": TYPE_COLOURS[kind], "marker": TYPE_MARKERS[kind], "label": ATTENTION_LABELS[kind]}
            mean_line(each, rows[rows["attention"] == kind], x, "score", **style)
        everywhere: dict[str, Any] = {"color": OURS, "marker": ".", "linestyle": "--", "label": "all kinds together"}
        mean_line(each, rows[rows["attention"] == "all"], x, "score", **everywhere)
    _percent(axes[0], "heads masked, of this kind")
    axes[1].xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[1].set_xlabel("heads masked")
    axes[0].set_ylabel(f"{score_name(frames)}, test set")
    panel(axes[0], "a", "by share")
    panel(axes[1], "b", "by number")
    shared_legend(figure, list(axes), columns=4)
    return figure


def fig5(frames: Frames, experiment: str) -> Figure:
    """Masking by importance at several checkpoints: the score, and the share kept of each checkpoint's own score."""
    score = score_name(frames)
    rows = _walks(first_seed(frames["checkpoints.tsv"]), ["update", "finished"])
    title = f"When heads become dispensable, experiment “{experiment}”{seed_note(frames['checkpoints.tsv'])}"
    figure, (axes,) = new_figure(2.7, title, ncols=2, width_ratios=[1, 1.15])
    checkpoints = [part for _, part in rows.groupby(["finished", "update"])]
    colours = sns.color_palette("viridis_r", n_colors=len(checkpoints) + 1)[1:]
    for part, colour in zip(checkpoints, colours, strict=True):
        axes[0].plot(part["masked_percent"], part["score"], marker="o", color=colour, label=_checkpoint(part))
    _percent(axes[0], "heads masked, of all")
    axes[0].set_ylabel(f"{score}, test set")
    axes[0].legend(title="after update")
    panel(axes[0], "a", score)
    kept = np.array([part["kept_percent"].where(part["unmasked"] >= LEAST).to_numpy(float) for part in checkpoints])
    drawn = coloured_cells(axes[1], kept, limits=(0.0, 100.0), colours="viridis")
    for row, place in np.argwhere(~np.isnan(kept)):
        style: dict[str, Any] = {"ha": "center", "va": "center", "color": "black" if kept[row, place] > 60 else "white"}
        axes[1].text(place + 0.5, row + 0.5, f"{kept[row, place]:.0f}", fontsize=5.5, **style)
    labels = [f"{_checkpoint(part)}\n({part['score'].iloc[0]:.1f})" for part in checkpoints]
    axes[1].set_yticks(np.arange(len(checkpoints)) + 0.5, labels, rotation=0)
    shares = checkpoints[0]["masked_percent"]
    axes[1].set_xticks(np.arange(len(shares)) + 0.5, [f"{share:.0f}" for share in shares], rotation=0)
    axes[1].set(xlabel="% of heads masked", ylabel=f"update ({score} with all heads)")
    axes[1].tick_params(length=0)
    axes[1].grid(visible=False)
    colour_bar(figure, drawn, [axes[1]], f"% of its own {score} kept", aspect=18)
    panel(axes[1], "b", "kept")
    return figure


def layers(frames: Frames, translators: pd.DataFrame, bert: pd.DataFrame, experiment: str) -> Figure:
    """Score change when a layer keeps only its best head on dev, by kind of attention, beside the paper's model."""
    rows, paper = first_seed(frames["layers_to_one.tsv"]), pd.concat([translators, bert])
    paper = paper[paper["metric"].isin(rows["metric"])]
    kinds = [kind for kind in ATTENTIONS if (rows["attention"] == kind).any()]
    title = f"Each layer cut to one head, experiment “{experiment}”{seed_note(frames['layers_to_one.tsv'])}"
    figure, (axes,) = new_figure(2.4, title, ncols=len(kinds), sharey=True)
    lines = {
        "ours, head chosen on dev": (rows, OURS, "o"),
        f"paper, {paper['model'].iloc[0]} on {paper['pair'].iloc[0]}": (paper, "#0072B2", "s"),
    }
    for each, letter, kind in zip(axes, "abc", kinds, strict=False):
        for label, (models, colour, marker) in lines.items():
            own = models[models["attention"] == kind]
            depth, style = own["layer"] / max(own["layer"].max(), 1), {"color": colour, "marker": marker}
            each.plot(depth, own["score_change"], label=label, **style)
        each.axhline(0, color="#666666", linewidth=0.9)
        each.set_xlabel("depth of the layer, first to last")
        panel(each, letter, ATTENTION_LABELS[kind])
    axes[0].set_ylabel(f"change of {score_name(frames)}")
    shared_legend(figure, [axes[0]], columns=2)
    return figure


def _checkpoint(part: pd.DataFrame) -> str:
    first = part.iloc[0]
    return f"{int(first['update'])}{', finished' if first['finished'] else ''}"


def _walks(curve_rows: pd.DataFrame, walk: list[str]) -> pd.DataFrame:
    """Rows compared with their unmasked model; lines average over the seeds of each `target`."""
    return with_unmasked(curve_rows, ["seed", *walk]).assign(target=curve_rows["masked"])


def _random(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw the mean of the random orders, and a band from the worst to the best of them."""
    random = rows[rows["order"].str.startswith("random-")]
    if not len(random):
        return
    found = random.groupby("masked_percent")["score"].agg(["mean", "min", "max"])
    axes.fill_between(found.index, found["min"], found["max"], color="#BBBBBB", alpha=0.45, linewidth=0)
    axes.plot(found.index, found["mean"], color="#888888", label=f"random, {random['order'].nunique()} orders")


def _percent(axes: Axes, label: str) -> None:
    axes.xaxis.set_major_formatter(PercentFormatter(100))
    axes.set(xlim=(-3, 103), xlabel=label)

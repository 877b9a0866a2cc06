"""Comparison of ways to choose heads: scores against heads kept, without updates and after fine-tuning."""

import textwrap
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from heads.base.bootstrap import SIGNIFICANT
from heads.base.methods import DRAWN, RANDOM, STRATIFIED
from heads.figures.style import new_figure, panel, score_name, shared_legend, spread_note
from heads.tables.labels import MINUS
from heads.tables.reading import Frames
from heads.tables.selection import MASKED, OWN_TRAINING, TRAINED_ON, selection_table

UNSURE = f"hollow: p ≥ {SIGNIFICANT}"
OTHER_FORMS = ("example", "token", "token_layer", "batch", "batch_layer", "signed", "signed_layer")
STRONG: dict[str, Any] = {"linewidth": 1.7, "markersize": 4.5, "zorder": 5}
THIN: dict[str, Any] = {"linewidth": 0.8, "markersize": 2.8, "zorder": 3}
FAINT: dict[str, Any] = {"linewidth": 0.6, "markersize": 1.8, "zorder": 2, "color": "#EBB08A", "marker": "s"}
OPTIMAL: dict[str, Any] = {**THIN, "color": "#7B4EA3", "marker": "P"}

STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "gates": ("gates, fixed number", {**STRONG, "color": "#0072B2", "marker": "o"}),
    "gates_lambda": ("gates, fixed λ", {**THIN, "color": "#0072B2", "marker": "o", "linestyle": "none"}),
    "dsp": ("subset pruning", {**STRONG, "color": "#009E73", "marker": "^"}),
    "example_layer": ("importance (Michel)", {**STRONG, "color": "#D55E00", "marker": "s"}),
    **dict.fromkeys(OTHER_FORMS, ("importance, other forms", FAINT)),
    "optimal": ("optimal for a budget", OPTIMAL),
    "ablation": ("BLEU lost when masked", {**THIN, "color": "#CC79A7", "marker": "D"}),
    "confidence": ("confidence", {**THIN, "color": "#E69F00", "marker": "v"}),
    "surgeon": ("surgeon, refitted", {**STRONG, "color": "#C2185B", "marker": "p"}),
    "causal": ("causal gates", {**THIN, "color": "#8C564B", "marker": "*"}),
    "lrp": ("LRP", {**THIN, "color": "#56B4E9", "marker": "X"}),
    "reversed": ("importance reversed", {**THIN, "color": "#555555", "marker": "x", "linestyle": (0, (1, 1.5))}),
}
"""Label and style of each method that is not drawn at random."""

BANDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    RANDOM: ("random", "#777777", {"color": "black", "linestyle": (0, (5, 1.5))}),
    STRATIFIED: ("random within kinds", "#2E7D32", {"color": "#2E7D32", "linestyle": (0, (3, 1, 1, 1))}),
}
"""Label, colour of band and marks, and style of the mean, for each way to draw heads at random."""

OWN: dict[str, tuple[str, dict[str, Any]]] = {
    "gates": ("gates, own training", {**THIN, "color": "#0072B2", "marker": "o", "linestyle": (0, (1, 1.5))}),
    "gates_lambda": STYLES["gates_lambda"],
    "dsp": ("subsets, own training", {**THIN, "color": "#009E73", "marker": "^", "linestyle": (0, (1, 1.5))}),
}
"""Methods that choose heads during training, as they are at the end of that training."""

WORDS = {"gates": "gates", "dsp": "subset pruning", "example_layer": "importance"}
"""Names of methods in a sentence; all others use their label."""

BESIDE = {
    RANDOM: "BLEU above the mean of {draws:.0f} random choices fine-tuned alike, with its 95 % interval against one "
    "more draw and the number of draws below",
    STRATIFIED: "Beside {draws:.0f} random choices with as many heads of each kind of attention",
}
"""How a sentence begins, by the way that heads were drawn."""


def selection(frames: Frames, experiment: str) -> Figure:
    """Scores against heads kept: a line for each method, a band for each way to draw; left masked, right fine-tuned."""
    table, score = selection_table(frames), score_name(frames)
    title = f"Ways to choose the heads that stay, experiment “{experiment}”{spread_note(table)}"
    sentence = textwrap.fill(verdict(table).replace("BLEU", score), 118)
    # The empty lines leave room for the sentence, which is not bold.
    figure, (axes,) = new_figure(4.0, title + "\n" * (sentence.count("\n") + 1), ncols=2)
    figure.text(0.01, 0.945, sentence, fontsize=7, va="top")
    treatments = (table[table["treatment"] == MASKED], table[table["treatment"] == TRAINED_ON])
    for each, rows in zip(axes, treatments, strict=True):
        _levels(each, rows, float(table["score_baseline"].mean()))
        for drawn in DRAWN:
            _band(each, rows[rows["method"] == drawn], *BANDS[drawn])
        for method, (label, style) in STYLES.items():
            _line(each, rows[rows["method"] == method], label.replace("BLEU", score), style)
        most = int(table["of"].max()) if len(table) else 1
        each.set(xlim=(most * 1.04, -most * 0.04), xlabel=f"heads kept, of {most}", ylabel=f"{score}, test set")
        each.xaxis.set_major_locator(MaxNLocator(integer=True))
    own = table[table["treatment"] == OWN_TRAINING]
    for method, (label, style) in OWN.items():
        _line(axes[1], own[own["method"] == method], label, style)
    updates = table["updates"].max()
    panel(axes[0], "a", "heads masked, no update")
    panel(axes[1], "b", f"heads removed, then {updates:.0f} updates" if updates > 0 else "nothing was fine-tuned")
    axes[0].plot([], [], color="#888888", marker="o", markerfacecolor="white", linestyle="none", label=UNSURE)
    shared_legend(figure, [*axes], columns=4)
    return figure


def verdict(table: pd.DataFrame) -> str:
    """How much better chosen heads do than random ones fine-tuned alike, from a `selection_table`, in sentences.

    With several seeds, differences and the ends of their intervals are averaged.
    """
    rivals = table[(table["treatment"] == TRAINED_ON) & ~table["method"].isin(["reversed", "control"])]
    found = [_beside(rivals, drawn, what) for drawn, what in BESIDE.items() if rivals[f"{drawn}_draws"].notna().any()]
    if not found:
        return "Whether chosen heads do better than random ones was not measured: none were fine-tuned beside draws."
    return " ".join(found)


def _beside(rivals: pd.DataFrame, drawn: str, what: str) -> str:
    """The differences of all methods from one way to draw heads, described by what its sentence begins with."""
    rivals = rivals[rivals[f"{drawn}_draws"].notna()]
    below = "draws_below" if drawn == RANDOM else f"{drawn}_draws_below"
    columns = [*(f"score_minus_{drawn}_{end}" for end in ("mean", "low", "high")), below]
    means = rivals.groupby(["kept", "method"])[columns].mean()
    parts = []
    for kept in sorted(set(rivals["kept"]), reverse=True):
        found = means.loc[kept]
        named = [
            f"{WORDS.get(name, label)} {_points(gain)} ({_points(low)} to {_points(high)}, above {above:g})"
            for name, (label, _) in STYLES.items()
            if name in found.index
            for gain, low, high, above in [found.loc[name]]
        ]
        parts.append(f"at {kept:.0f} heads {', '.join(named)}")
    better = int((means[f"score_minus_{drawn}_low"] > 0).sum())
    said = what.format(draws=rivals[f"{drawn}_draws"].min())
    return f"{said}: {'; '.join(parts)}. {better} of {len(means)} intervals lie above zero."


def _points(gain: float) -> str:
    return f"{'+' if gain >= 0 else MINUS}{abs(gain):.1f}"


def with_start(rows: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """Points in order of heads kept; if heads were only masked, the unpruned model is added as the last point."""
    ordered = points[["kept", "score"]].sort_values("kept", kind="stable")
    if rows["treatment"].iloc[0] != MASKED:
        return ordered
    start = {"kept": [rows["of"].max()], "score": [rows["score_baseline"].mean()]}
    return pd.concat([ordered, pd.DataFrame(start)], ignore_index=True)


def _levels(axes: Axes, rows: pd.DataFrame, unpruned: float) -> None:
    style: dict[str, Any] = {"color": "#666666", "linewidth": 0.9, "zorder": 1}
    axes.axhline(unpruned, label="unpruned model", **style)
    control = rows[rows["method"] == "control"]["score"]
    if len(control):
        axes.axhline(control.mean(), linestyle=(0, (4, 2)), label="control, all heads fine-tuned", **style)


def _band(axes: Axes, rows: pd.DataFrame, name: str, color: str, style: dict[str, Any]) -> None:
    if rows.empty:
        return
    by_number = rows.groupby("kept", as_index=False)
    low, mean, high = (with_start(rows, by_number["score"].agg(how)) for how in ("min", "mean", "max"))
    draws = int(rows["draw"].nunique())
    axes.fill_between(
        mean["kept"], low["score"], high["score"], color=color, alpha=0.22, linewidth=0, zorder=1,
        label=f"{name}, {draws} draws",
    )  # fmt: skip
    axes.plot(mean["kept"], mean["score"], **style, zorder=4, label=f"{name}, mean")
    _marks(axes, rows, {"color": color, "marker": ".", "markersize": 4, "zorder": 2})


def _line(axes: Axes, rows: pd.DataFrame, label: str, style: dict[str, Any]) -> None:
    """Draw a line through the means over seeds; marks are filled if they surely differ from the unpruned model."""
    if rows.empty:
        return
    means = with_start(rows, rows.groupby("target", sort=False)[["kept", "score"]].mean())
    line = {key: value for key, value in style.items() if key not in ("marker", "markersize")}
    axes.plot(means["kept"], means["score"], **line)
    _marks(axes, rows, style)
    shown = {"linestyle": "-", **style}
    axes.add_line(Line2D([], [], label=label, **shown))


def _marks(axes: Axes, rows: pd.DataFrame, style: dict[str, Any]) -> None:
    mark = {key: value for key, value in style.items() if key != "linewidth"} | {"linestyle": "none"}
    sure = rows["p_value"] < SIGNIFICANT
    axes.plot(rows["kept"][sure], rows["score"][sure], **mark)
    axes.plot(rows["kept"][~sure], rows["score"][~sure], markerfacecolor="white", **mark)

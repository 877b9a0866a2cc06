"""Grids of heads: relevance, confidence and functions (Voita et al., Figs 1 and 2), and which heads a model needs."""

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from heads.base.bootstrap import MICHEL_SIGNIFICANT
from heads.base.names import ATTENTION_LABELS, ATTENTIONS, HEAD
from heads.figures.style import (
    FUNCTION_COLOURS,
    FUNCTION_LABELS,
    colour_bar,
    first_seed,
    heat_map,
    matrix,
    new_figure,
    none_here,
    number_layers,
    panel,
    score_name,
    seed_note,
    trees_note,
)
from heads.tables.labels import MINUS, SHARES, function_label, is_shown, reading_label, relation_label, rule_label
from heads.tables.measures import gate_survival
from heads.tables.picking import first_of
from heads.tables.reading import Frames
from heads.tables.roles import FUNCTIONS
from heads.tables.roles import head_functions as functions_of_heads

MEASURES = (("lrp.tsv", "relevance_absolute", "Blues"), ("confidence.tsv", "confidence", "Oranges"))
SIGNED = "RdBu_r"
"""Colours for values that may be negative, white at zero."""

KINDS = {"enc_self": "enc_self", "dec_enc": "all"}
"""The kinds of attention shown, each with the pruning scope that its gates come from."""
OFFSET_LABELS = {"-1": "previous", "0": "itself", "+1": "next", "-2": "2 before", "+2": "2 after"}
CROSS_LABELS = {
    "being written": "source of\nthis token",
    "written last": "source of\nthe last",
    "written next": "source of\nthe next",
}
USUALLY = 0.5
"""The smallest share of cases in which a head is said to do something."""
DARK = 0.6
"""The share of prunings above which a cell is dark and its text white."""


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
    order = np.argsort(-values["relevance_absolute"], axis=1, kind="stable")
    layers, heads = order.shape
    note = trees_note(frames["roles.tsv"]) + seed_note(frames["lrp.tsv"])
    title = f"Encoder heads of the unpruned model, experiment “{experiment}”{note}"
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


def heads_needed(frames: Frames, experiment: str) -> Figure:
    """Grids of encoder and cross-attention heads: the darker a head, the more prunings leave its gate open.

    Cells are white if nothing was pruned in the scope. Prunings are all those of the scope (the encoder alone; all
    kinds for cross-attention), over all seeds. A cell says what the head looks at in at least half of the cases and,
    below, the score change when it alone is masked, if p < 0.01; both are from the first seed.
    """
    stays, doing = survival(frames["heads.tsv"]), {**_encoder(frames["roles.tsv"]), **_cross(frames)}
    cost = first_seed(frames["ablation.tsv"]).set_index([*HEAD])
    layers = [
        1 + int(cost.loc[kind].index.get_level_values("layer").max()) if kind in cost.index else 1 for kind in KINDS
    ]
    title = f"Which heads does the model need? Experiment “{experiment}”"
    label = f"head; number in a cell: {score_name(frames)} change when masked alone, p < {MICHEL_SIGNIFICANT}"
    grid = {"height_ratios": [max(each, 2) for each in layers]}
    figure, axes = new_figure(0.9 + 0.5 * sum(max(each, 2) for each in layers), title, nrows=2, gridspec_kw=grid)
    for each, kind, letter in zip(axes[:, 0], KINDS, "ab", strict=True):
        gates = f"gates on {'the encoder' if KINDS[kind] == kind else 'all kinds'}"
        pruned = (stays["attention"] == kind).any()
        panel(each, letter, f"{ATTENTION_LABELS[kind]}; {gates if pruned else 'was not pruned'}")
        if kind not in cost.index:
            none_here(each)
            continue
        places = cost.loc[kind].reset_index()[["layer", "head"]].assign(attention=kind)
        own = places.merge(stays, how="left", on=[*HEAD])
        cells = heat_map(each, matrix(own, "open"), limits=(0.0, 1.0), colours="Greens")
        for layer, head, share in own[["layer", "head", "open"]].itertuples(index=False):
            _cell(each, layer, head, doing.get((kind, layer, head), ""), _change(cost, (kind, layer, head)), share)
        each.set(ylabel="layer", xlabel=label)
    colour_bar(figure, cells, [*axes[:, 0]], "share of prunings that keep the head", aspect=24)
    return figure


def survival(gates: pd.DataFrame) -> pd.DataFrame:
    """The share of prunings that leave each head of KINDS, as `open`, with `attention`, `layer` and `head`."""
    shares = gate_survival({"heads.tsv": gates}).groupby(level=[*HEAD]).mean().reset_index()
    parts = [
        shares[shares["attention"] == kind].rename(columns={f"gate_survival_{scope}": "open"})[[*HEAD, "open"]]
        for kind, scope in KINDS.items()
    ]
    return pd.concat(parts).dropna(subset="open")


def _encoder(roles: pd.DataFrame) -> dict[tuple[str, int, int], str]:
    """What encoder heads usually look at: an offset, or a relation or the rarest subword if they have that role."""
    if roles.empty:
        return {}
    rows = first_of(first_seed(roles), "trees")
    held = (rows["role"] == "positional") | (rows["role"].isin(["syntactic", "rare"]) & (rows["holds"] == 1))
    found = _most(rows[held], "accuracy")[["layer", "head", "role", "name", "accuracy"]].itertuples(index=False)
    return {("enc_self", layer, head): f"{_role(role, name)}\n{share:.0%}" for layer, head, role, name, share in found}


def _most(rows: pd.DataFrame, share: str) -> pd.DataFrame:
    """For each head, the row with the largest share, if that is usual."""
    return rows[rows[share] >= USUALLY].sort_values(share).drop_duplicates(["layer", "head"], keep="last")


def _role(role: str, name: str) -> str:
    if role == "positional":
        return OFFSET_LABELS.get(name, name.replace("-", MINUS))
    return relation_label(name, short=False) if role == "syntactic" else "rarest"


def _cross(frames: Frames) -> dict[tuple[str, int, int], str]:
    """The target token whose source each cross-attention head usually looks at."""
    rows = _most(first_seed(frames["cross_attention_roles.tsv"]), "share")
    found = rows[["layer", "head", "role", "share"]].itertuples(index=False)
    return {("dec_enc", layer, head): f"{CROSS_LABELS[role]} {share:.0%}" for layer, head, role, share in found}


def _change(cost: pd.DataFrame, place: tuple[str, int, int]) -> str:
    """The score change when a head alone is masked; "" if it is not significant."""
    if place not in cost.index or not cost.loc[place, "p_value"] < MICHEL_SIGNIFICANT:
        return ""
    return f"{cost.loc[place, 'score_change']:+.1f}".replace("-", MINUS)


def _cell(axes: Axes, layer: int, head: int, doing: str, change: str, share: float) -> None:
    colour = "white" if share > DARK else "black"
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 5.5, "linespacing": 0.95, "color": colour}
    axes.text(head + 0.5, layer + (0.62 if change else 0.5), doing, **style)
    axes.text(head + 0.5, layer + 0.2, change, **style | {"fontsize": 5})

"""Which heads a model needs: what each head does, how long its gate stays open, and what masking it alone costs."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heads.base.names import ATTENTION_LABELS, HEAD
from heads.figures.style import colour_bar, first_seed, heat_map, matrix, new_figure, none_here, panel, score_name
from heads.tables.labels import MINUS, relation_label
from heads.tables.measures import gate_survival
from heads.tables.michel import SIGNIFICANT
from heads.tables.picking import first_of
from heads.tables.reading import Frames

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


def heads_needed(frames: Frames, experiment: str) -> Figure:
    """Grids of encoder and cross-attention heads: the darker a head, the more prunings leave its gate open.

    Cells are white if nothing was pruned in the scope. Prunings are all those of the scope (the encoder alone; all
    kinds for cross-attention), over all seeds. A cell says what the head looks at in at least half of the cases and,
    below, the score change when it alone is masked, if p < 0.01; both are from the first seed. frames: `heads.tsv`,
    `roles.tsv` (possibly without rows), `cross_attention_roles.tsv`, `ablation.tsv` and scores.
    """
    stays, doing = survival(frames["heads.tsv"]), {**_encoder(frames["roles.tsv"]), **_cross(frames)}
    cost = first_seed(frames["ablation.tsv"]).set_index([*HEAD])
    layers = [
        1 + int(cost.loc[kind].index.get_level_values("layer").max()) if kind in cost.index else 1 for kind in KINDS
    ]
    title = f"Which heads does the model need? Experiment “{experiment}”"
    label = f"head; number in a cell: {score_name(frames)} change when masked alone, p < {SIGNIFICANT}"
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
    if place not in cost.index or not cost.loc[place, "p_value"] < SIGNIFICANT:
        return ""
    return f"{cost.loc[place, 'score_change']:+.1f}".replace("-", MINUS)


def _cell(axes: Axes, layer: int, head: int, doing: str, change: str, share: float) -> None:
    colour = "white" if share > DARK else "black"
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 5.5, "linespacing": 0.95, "color": colour}
    axes.text(head + 0.5, layer + (0.62 if change else 0.5), doing, **style)
    axes.text(head + 0.5, layer + 0.2, change, **style | {"fontsize": 5})

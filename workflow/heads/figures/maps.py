"""Attention of the encoder heads with the clearest roles on real sentences (Voita et al., sec. 5)."""

from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from heads.analysis.attention_maps import encoder_on_words
from heads.figures.style import first_seed, new_figure
from heads.tables.labels import MINUS, relation_label
from heads.tables.picking import first_of
from heads.tables.reading import Frames

MAPS_IN_ROW = 3
MOST_MAPS = 9
GOLD = "#D55E00"


def clearest_heads(roles: pd.DataFrame) -> list[Any]:
    """Rows of the most accurate head for the offsets -1 and +1, for each relation and direction, and for rare words.

    roles: `roles.tsv` of one run. Measures without cases are left out; ties go to the first head.
    """
    counted = roles[(roles["cases"] > 0) & roles["accuracy"].notna()]
    relations = [("syntactic", name) for name in counted[counted["role"] == "syntactic"]["name"].unique()]
    wanted = [("positional", "-1"), ("positional", "+1"), *relations, ("rare", "one of two rarest")]
    ordered = counted.sort_values("accuracy", ascending=False, kind="stable")
    best = ordered.drop_duplicates(["role", "name"]).set_index(["role", "name"], drop=False)
    found = list(best.loc[[key for key in wanted if key in best.index]].itertuples(index=False))
    # With more relations than places, those with the smallest gain over the baseline are dropped.
    gains = sorted((t.accuracy - t.baseline for t in found if t.role == "syntactic"), reverse=True)
    places = MOST_MAPS - sum(t.role != "syntactic" for t in found)
    least = gains[places - 1] if places <= len(gains) - 1 else -np.inf
    return [t for t in found if t.role != "syntactic" or t.accuracy - t.baseline >= least][:MOST_MAPS]


def gold_cells(sentence: dict[str, Any], name: str) -> list[tuple[int, int]]:
    """Cells (attending word, word it should attend to) of a relation, such as `nsubj dependent-to-head`."""
    relation, direction = name.split(" ", maxsplit=1)
    cells = []
    for dependent, (label, head) in enumerate(zip(sentence["relations"], sentence["tree_heads"], strict=True)):
        if head > 0 and relation in (label, label.split(":")[0]):
            cells.append((dependent, head - 1) if direction == "dependent-to-head" else (head - 1, dependent))
    return cells


def sentence_for(sentences: list[dict[str, Any]], chosen: Any, turn: int) -> dict[str, Any]:
    """The first sentence with the most arcs of the head's relation; for other roles, sentences take turns."""
    if chosen.role != "syntactic":
        return sentences[turn % len(sentences)]
    return max(sentences, key=lambda sentence: len(gold_cells(sentence, chosen.name)))


def attention_maps(frames: Frames, experiment: str) -> Figure:
    """Maps of the unpruned model's clearest heads: attending words in rows, cells on gold arcs framed."""
    heads = int(frames["model.json"]["head"].max()) + 1
    sentences = [sentence for maps in first_seed(frames["maps.json"])["maps"] for sentence in maps]
    shown = clearest_heads(first_of(first_seed(frames["roles.tsv"]), "trees")) if sentences else []
    rows = max(1, -(-len(shown) // MAPS_IN_ROW))
    title = f"Attention of the encoder heads with the clearest roles, unpruned model, experiment “{experiment}”"
    figure, axes = new_figure(0.45 + 2.3 * rows, title, nrows=rows, ncols=MAPS_IN_ROW)
    for turn, (each, chosen) in enumerate(zip(axes.flat, shown, strict=False)):
        sentence = sentence_for(sentences, chosen, turn)
        weights = encoder_on_words(sentence)[chosen.layer * heads + chosen.head]
        _map(cast(Axes, each), sentence, weights, chosen)
    for each in axes.flat[len(shown) :]:
        each.set_axis_off()
    if not shown:
        axes[0, 0].text(0, 0.5, "no sentence with attention maps, or no measured head", transform=axes[0, 0].transAxes)
    return figure


def _map(axes: Axes, sentence: dict[str, Any], weights: NDArray[np.float64], chosen: Any) -> None:
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    places = range(len(weights))
    words = [word if len(word) <= 12 else f"{word[:11]}…" for word in sentence["words"]]
    axes.set_xticks(places, words, rotation=90, fontsize=5)
    axes.set_yticks(places, words, fontsize=5)
    axes.tick_params(length=0, pad=1.5)
    axes.xaxis.tick_top()
    axes.grid(visible=False)
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("#BBBBBB")
    for row, column in gold_cells(sentence, chosen.name) if chosen.role == "syntactic" else []:
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=GOLD, linewidth=1.1))
    axes.set_xlabel(_caption(chosen), fontsize=6, labelpad=3)


def _caption(chosen: Any) -> str:
    if chosen.role == "positional":
        what = f"offset {chosen.name.replace('-', MINUS)} in subwords"
    elif chosen.role == "syntactic":
        what = relation_label(chosen.name, short=False)
    else:
        what = "one of the two rarest"
    score = f"{chosen.accuracy:.0%}"
    if chosen.role == "syntactic":
        score += f", baseline {chosen.baseline:.0%}"
    missed = "" if chosen.holds else "\n(role uncertain)" if chosen.reaches else "\n(below the threshold)"
    return f"{what}: {score}\nlayer {chosen.layer + 1}, head {chosen.head + 1}{missed}"

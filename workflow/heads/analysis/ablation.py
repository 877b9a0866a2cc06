"""What a model loses when heads are masked: each alone, or all of a layer but one (Michel et al. 2019, 3).

A head is masked by a gate of zero; nothing is trained again. Whether BLEU or accuracy changed is tested against the
unmasked model, see `heads.analysis.metrics`. No file is opened here: how to translate, or to classify, is given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from torch import Tensor

from heads.analysis.metrics import BLEU, Answers, Metric
from heads.model.encoder import Encoder
from heads.model.shape import Head, ModelShape
from heads.model.sublayers import Gates

Translate = Callable[[Gates | None], Answers]
"""Translates, classifies or embeds always the same lines, with these gates on the heads (None: all open)."""

COLUMNS = ("attention", "layer", "head", "bleu", "bleu_change", "p_value")
"""These and all below are named after the metric."""
CHOICE_COLUMNS = (
    "attention",
    "layer",
    "heads",
    "head_chosen",
    "bleu",
    "bleu_change",
    "p_value",
    "head_oracle",
    "bleu_oracle",
    "bleu_change_oracle",
    "p_value_oracle",
)

Row = dict[str, str | int | float]


def gates_without(model: Encoder, masked: Collection[Head]) -> dict[str, list[Tensor]]:
    """Gates, where the model is, that close the live heads `masked` and leave all others open."""
    make = next(model.parameters()).new_tensor
    return {
        kind: [make([float((kind, layer, head) not in masked) for head in live]) for layer, live in enumerate(layers)]
        for kind, layers in model.shape.live_heads.items()
    }


def columns_of(metric: Metric) -> tuple[str, ...]:
    """Columns of `ablation_rows`: COLUMNS, and what is written beside the metric."""
    beside = [(name, f"{name}_change", f"{name}_p_value") for name in metric.beside]
    return (*metric.named(COLUMNS), *(column for columns in beside for column in columns))


def masked_alone(shape: ModelShape) -> dict[Head, set[Head]]:
    """For every live head what to mask so that it alone is missing (Michel et al. 2019, sec. 3.2)."""
    return {head: {head} for head in shape.heads()}


def kept_alone(shape: ModelShape) -> dict[Head, set[Head]]:
    """For every live head what to mask so that it is the only one left of its layer (Michel et al. 2019, sec. 3.3)."""
    heads = shape.heads()
    return {head: {other for other in heads if other[:2] == head[:2] and other != head} for head in heads}


def ablation_rows(
    model: Encoder,
    cases: Mapping[Head, Collection[Head]],
    translate: Translate,
    references: Answers,
    metric: Metric = BLEU,
    *,
    resamples: int,
) -> list[Row]:
    """One row for every case: the score with its heads masked, the change, and how likely so large a one is by chance.

    The p-value is two-sided, and of BLEU never below 1 / (resamples + 1).
    """
    unmasked = translate(None)
    texts = {head: translate(gates_without(model, masked)) if masked else unmasked for head, masked in cases.items()}
    cells: dict[Head, list[str | int | float]] = {head: [*head] for head in texts}
    for paired in (metric.paired, *metric.beside.values()):
        (whole, _), *scores = paired(unmasked, list(texts.values()), references, resamples)
        for head, (score, p_value) in zip(texts, scores, strict=True):
            cells[head] += [score, score - whole, p_value]
    return [dict(zip(columns_of(metric), row, strict=True)) for row in cells.values()]


def choice_rows(chosen_on: Sequence[Row], scored_on: Sequence[Row], metric: Metric = BLEU) -> list[Row]:
    """For every layer cut to one head: the head that was best on one set, and what it scores on another.

    Both are rows of `kept_alone`. The oracle is the best head on the set that scores it, which flatters.
    """
    layers: dict[tuple[str, int], list[Row]] = {}
    for row in chosen_on:
        layers.setdefault((str(row["attention"]), int(row["layer"])), []).append(row)
    scored = {(row["attention"], row["layer"], row["head"]): row for row in scored_on}
    columns = metric.named(COLUMNS)

    def score(row: Row) -> float:
        return float(row[metric.name])

    table: list[Row] = []
    for (kind, layer), rows in layers.items():
        best = scored[kind, layer, max(rows, key=score)["head"]]
        oracle = max((scored[kind, layer, row["head"]] for row in rows), key=score)
        measures = [row[name] for row in (best, oracle) for name in ("head", *columns[3:])]
        table.append(dict(zip(metric.named(CHOICE_COLUMNS), (kind, layer, len(rows), *measures), strict=True)))
    return table

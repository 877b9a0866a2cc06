"""Effect of masking heads: each head alone, or all heads of a layer but one (Michel et al. 2019, 3).

A head is masked by a gate of zero; the model is not trained again. Changes of BLEU or accuracy are tested against the
unmasked model, see `heads.analysis.metrics`. This module opens no files: the caller supplies the function that
translates or classifies.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from torch import Tensor

from heads.analysis.metrics import BLEU, Answers, Metric
from heads.base.columns import ABLATION_COLUMNS, CHOICE_COLUMNS
from heads.model.encoder import Encoder
from heads.model.head_removal import open_without
from heads.model.shape import Head, ModelShape
from heads.model.sublayers import Gates

Translate = Callable[[Gates | None], Answers]
"""Translate, classify or embed a fixed set of lines with the given gates on the heads (None: all open)."""

Row = dict[str, str | int | float]


def gates_without(model: Encoder, masked: Collection[Head]) -> dict[str, list[Tensor]]:
    """Gates, on the model's device, that close the live heads in `masked` and leave all others open."""
    make = next(model.parameters()).new_tensor
    left = open_without(model.shape, masked)
    return {kind: [make([float(stays) for stays in live]) for live in layers] for kind, layers in left.items()}


def columns_of(metric: Metric) -> tuple[str, ...]:
    """Columns of `ablation_rows`: ABLATION_COLUMNS, then those of the metric's additional scores."""
    beside = [(name, f"{name}_change", f"{name}_p_value") for name in metric.beside]
    return (*metric.named(ABLATION_COLUMNS), *(column for columns in beside for column in columns))


def masked_alone(shape: ModelShape) -> dict[Head, set[Head]]:
    """For each live head, the set to mask: this head alone (Michel et al. 2019, sec. 3.2)."""
    return {head: {head} for head in shape.heads()}


def kept_alone(shape: ModelShape) -> dict[Head, set[Head]]:
    """For each live head, the set to mask: all other heads of its layer (Michel et al. 2019, sec. 3.3)."""
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
    """One row for each case: the score with its heads masked, the change, and the p-value of the change.

    The p-value is two-sided; for BLEU it is never below 1 / (resamples + 1).
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
    """For each layer reduced to one head: the head that is best on one set, and its score on another.

    Both arguments are rows for `kept_alone`. The oracle is the best head on the set that scores it, which is
    optimistic.
    """
    layers: dict[tuple[str, int], list[Row]] = {}
    for row in chosen_on:
        layers.setdefault((str(row["attention"]), int(row["layer"])), []).append(row)
    scored = {(row["attention"], row["layer"], row["head"]): row for row in scored_on}
    columns = metric.named(ABLATION_COLUMNS)

    def score(row: Row) -> float:
        return float(row[metric.name])

    table: list[Row] = []
    for (kind, layer), rows in layers.items():
        best = scored[kind, layer, max(rows, key=score)["head"]]
        oracle = max((scored[kind, layer, row["head"]] for row in rows), key=score)
        measures = [row[name] for row in (best, oracle) for name in ("head", *columns[3:])]
        table.append(dict(zip(metric.named(CHOICE_COLUMNS), (kind, layer, len(rows), *measures), strict=True)))
    return table

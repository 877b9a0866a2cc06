"""The table of a model's heads: each head's share of the relevance of its layer, averaged over generation steps.

Two shares are kept apart, since relevance may be negative: signed, R / sum of R, as the paper writes it, and absolute,
|R| / sum of |R|. Both sum to one over the heads of a layer. The mean of signed shares hangs on the few steps where a
layer's positive and negative relevance nearly cancel; the absolute ones have no such steps.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from heads.batches import Batch
from heads.lrp.walk import head_relevance
from heads.names import ATTENTIONS
from heads.settings import LrpSettings
from heads.transformer import Transformer

COLUMNS = ("attention", "layer", "head", "relevance", "relevance_absolute", "steps")

TOLERANCE = 1e-3
"""Largest deviation from conservation, as a share of the logit, that passes.

A denominator keeps stabiliser / |denominator| of what passes it, so deviations grow in proportion to the stabiliser:
with 1e-9 they stayed below 1e-5 in trained models of three layers.
"""


@dataclass(frozen=True, slots=True)
class RelevanceTable:
    """Rows of lrp.tsv, and how far they can be trusted."""

    rows: list[dict[str, object]]
    steps: int
    """Generation steps walked."""
    largest_deviation: float
    """Over all steps; see `HeadRelevance.deviation`."""
    left_out: int
    """Over all layers, how many steps had heads whose relevances sum to zero, so that they have no shares."""


def shares(relevance: Tensor, stabiliser: float) -> tuple[Tensor, Tensor, Tensor]:
    """Signed and absolute shares [N, H] of relevances [N, H] of a layer's heads, and which steps have shares [N].

    A step has none, and rows of zero, where its relevances cancel: |sum| <= stabiliser * sum of absolutes.
    """
    signed, absolute = relevance.sum(1, keepdim=True), relevance.abs().sum(1, keepdim=True)
    usable = signed.abs() > stabiliser * absolute
    zero = torch.zeros_like(relevance)
    return (
        torch.where(usable, relevance / signed, zero),
        torch.where(usable, relevance.abs() / absolute, zero),
        usable[:, 0],
    )


def relevance_rows(model: Transformer, batches: Iterable[Batch], settings: LrpSettings) -> RelevanceTable:
    """Shares of all live heads of `model` under their original numbers, over all generation steps of `batches`.

    The batches are on the model's device; the walk is done on a copy of the model in float64.
    Raises ValueError when a step's relevance was not conserved within TOLERANCE.
    """
    model = copy.deepcopy(model).double().eval()
    places = [(kind, layer) for kind in ATTENTIONS for layer in range(model.shape.layers)]
    live = model.shape.live_heads
    sums = {
        (kind, layer): [torch.zeros(size, dtype=torch.float64) for size in (len(live[kind][layer]),) * 2 + ((),)]
        for kind, layer in places
    }
    walked, left_out, deviations = 0, 0, [0.0]
    for batch in batches:
        found = head_relevance(model, batch, settings)
        deviations.append(float(found.deviation.max()))
        walked += len(found.logits)
        for kind, layer in places:
            parts = [part.sum(0).cpu() for part in shares(found.heads[kind][layer], settings.stabiliser)]
            sums[kind, layer] = [before + part for before, part in zip(sums[kind, layer], parts, strict=True)]
            left_out += len(found.logits) - int(parts[2]) if live[kind][layer] else 0
    largest_deviation = float(torch.tensor(deviations, dtype=torch.float64).max())  # NaN if one is, unlike max()
    if not largest_deviation <= TOLERANCE:
        raise ValueError(
            f"relevance is not conserved: a step is off by {largest_deviation:.3g} of its logit "
            f"(allowed: {TOLERANCE}); the plain ratio breaks down where denominators vanish: "
            "try a smaller lrp.stabiliser."
        )
    return RelevanceTable(_rows(model, sums), walked, largest_deviation, left_out)


def _rows(model: Transformer, sums: dict[tuple[str, int], list[Tensor]]) -> list[dict[str, object]]:
    """One row a head from the sums of signed and absolute shares and of steps; zero where no step had shares."""
    rows: list[dict[str, object]] = []
    for (kind, layer), (signed, absolute, steps) in sums.items():
        for place, head in enumerate(model.shape.live_heads[kind][layer]):
            count = int(steps)
            mean = (float(signed[place]) / max(count, 1), float(absolute[place]) / max(count, 1))
            rows.append(dict(zip(COLUMNS, (kind, layer, head, *mean, count), strict=True)))
    return rows

"""Relevance of all generation steps of a batch, propagated back for as many sentences and steps as memory allows.

Shape letters: B batch, T target length, H heads of a layer, N real generation steps of a batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from heads.analysis.lrp.backward import TracedModel
from heads.analysis.lrp.rules import Rule, stabilised
from heads.base.names import ATTENTIONS
from heads.model.encoder import Encoder
from heads.text.batches import Batch

CHUNK_ELEMENTS = {"cpu": 2**19, "cuda": 2**25}
"""Largest number of elements in a backward pass's widest tensor: what fits a cache, or a fraction of a GPU's memory."""

STEPS_TOGETHER = 8
"""Number of steps that should fit at once: sentences are traced, and rules prepared, once for all steps."""

SMALLEST_LOGIT = 1e-9
"""Guards the relative deviation against a logit of zero."""


@dataclass(frozen=True, slots=True)
class HeadRelevance:
    """Relevance at the heads in each generation step of a batch: sentence after sentence, without padding."""

    heads: dict[str, list[Tensor]]
    """By kind of attention, for each layer [N, H] in the order of its live heads."""
    logits: Tensor
    """[N], the top-1 logits."""
    places: dict[str, Tensor]
    """By sub-layer, from the top: [N, 2], relevance under way and absorbed, as shares of the initial relevance."""

    def deviations(self) -> dict[str, Tensor]:
        """Deviation [N] of the account below each sub-layer from the initial relevance, as a share of that."""
        return {name: (shares.sum(-1) - 1).abs() for name, shares in self.places.items()}


@torch.no_grad()
def head_relevance(model: Encoder, batch: Batch, rule: Rule, chunk_elements: int | None = None) -> HeadRelevance:
    """Relevance at every head for the top-1 logit of each generation step of `batch`, given its target prefix.

    model: in evaluation mode and float64. chunk_elements: bound on the size of the widest tensor; results do not depend
    on it.
    """
    # Longest first, so that the sentences that still have steps are always the first ones.
    order = batch.target_mask.sum(1).argsort(descending=True, stable=True)
    elements = chunk_elements or CHUNK_ELEMENTS[order.device.type]
    mask, back = batch.target_mask, order.argsort()
    start, logits = (torch.zeros(mask.shape, dtype=torch.float64, device=mask.device) for _ in range(2))
    heads = {
        kind: [start.new_zeros(*mask.shape, len(layer)) for layer in model.shape.live_heads[kind]]
        for kind in ATTENTIONS
    }
    places: dict[str, Tensor] = {}
    for rows in groups(model, batch, elements):
        part = cut(batch, order[rows])
        traced, steps = TracedModel(model, part, rule), part.target_mask.shape[1]
        start[rows, :steps], logits[rows, :steps] = traced.start, traced.logits
        for first, last in chunks(model, part, elements):
            sentences = int(part.target_mask[:, first].sum())
            here = (slice(rows.start, rows.start + sentences), slice(first, last))
            backward = traced.backward_pass(sentences, first, last)
            for name, amounts in backward.places.items():
                places.setdefault(name, start.new_zeros(*mask.shape, 2))[here] = amounts
            for name, of_heads in backward.heads.items():
                kind, layer = name.split(".")
                heads[kind][int(layer)][here] = of_heads

    def in_order(found: Tensor) -> Tensor:
        return found[back][mask]

    whole = stabilised(in_order(start), SMALLEST_LOGIT)[:, None]
    return HeadRelevance(
        {kind: [in_order(layer) for layer in layers] for kind, layers in heads.items()},
        in_order(logits),
        {name: in_order(amounts) / whole for name, amounts in places.items()},
    )


def widest(model: Encoder, batch: Batch) -> int:
    """Number of elements in the largest tensor of one step of one sentence of the batch."""
    positions = max(batch.source.shape[1], batch.target_input.shape[1])
    return positions * max(model.shape.width, model.shape.feedforward)


def groups(model: Encoder, batch: Batch, elements: int) -> Iterator[slice]:
    """Cut a batch's sentences into runs of which `STEPS_TOGETHER` steps need tensors of about `elements` elements."""
    at_once = max(1, elements // (STEPS_TOGETHER * widest(model, batch)))
    for first in range(0, len(batch.source), at_once):
        yield slice(first, min(len(batch.source), first + at_once))


def chunks(model: Encoder, batch: Batch, elements: int) -> Iterator[tuple[int, int]]:
    """Cut a batch's generation steps into runs [first, last) that need tensors of about `elements` elements."""
    steps = batch.target_input.shape[1]
    at_once = max(1, elements // (len(batch.source) * widest(model, batch)))
    for first in range(0, steps, at_once):
        yield first, min(steps, first + at_once)


def cut(batch: Batch, rows: Tensor) -> Batch:
    """The given sentences of a batch, with no more padding than they need."""
    source, target = (int(mask[rows].sum(1).max()) for mask in (batch.source_mask, batch.target_mask))
    ends = (source, source, target, target, target)
    return Batch(*(getattr(batch, name)[rows, :end] for name, end in zip(Batch.__slots__, ends, strict=True)))

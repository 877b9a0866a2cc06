"""The alignment heads of an exported model: which they are, and where they stand in its own numbering."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

import torch

from heads.base.files import UserError, read_tsv
from heads.model.shape import ModelShape
from heads.model.sublayers import layers_of
from heads.model.transformer import Transformer

ROWS = "alignment_heads.tsv"
STEP = "output"
"""Who translates with attention attaches to each subword that of the step which gives it."""

AligningHead = tuple[int, int]
"""Layer and original number of a cross-attention head."""


def aligning_heads(rows: Path, shape: ModelShape) -> list[AligningHead]:
    """The heads that align by the rows of `heads alignment_heads`, the one that errs least first; if none, that one.

    Raises UserError for a file that holds no such rows, or rows of another model.
    """
    try:
        found = [
            (float(row["aer"]), (int(row["layer"]), int(row["head"])), row["aligns"] == "1")
            for row in read_tsv(rows)
            if row["step"] == STEP
        ]
    except (LookupError, ValueError) as error:
        raise UserError(
            f"{rows} is no table of alignment heads ({error!r}): give what that stage has written."
        ) from None
    live = {(layer, head) for _, layer, head in shape.heads(("dec_enc",))}
    if {head for _, head, _ in found} != live:
        raise UserError(
            f"{rows} has not just the live cross-attention heads of this model, by the step {STEP}: measure them with "
            "python -m heads alignment_heads."
        )
    ordered = sorted(found)
    return [head for _, head, aligns in ordered if aligns] or [head for _, head, _ in ordered[:1]]


def aligning_first(model: Transformer, heads: Sequence[AligningHead]) -> tuple[Transformer, list[list[int]]]:
    """The same function with the aligning heads of one layer, that of the first of them, in front of their layer.

    Also gives layer and place among the live heads of each of `heads`, in the new order.
    """
    live = model.shape.live_heads["dec_enc"]
    order = {layer: list(numbers) for layer, numbers in enumerate(live)}
    if not heads:
        return model, []
    best = heads[0][0]
    front = [head for layer, head in heads if layer == best]
    order[best] = front + [head for head in live[best] if head not in front]
    moved = copy.deepcopy(model)
    attention = layers_of(moved.decoder)[best].cross_attention
    width = model.shape.head_width
    rows = torch.cat([torch.arange(width) + width * live[best].index(head) for head in order[best]])
    for linear in (attention.query, attention.key, attention.value):
        for parameter in linear.parameters():
            parameter.data = parameter.data[rows]
    attention.output.weight.data = attention.output.weight.data[:, rows]
    return moved, [[layer, order[layer].index(head)] for layer, head in heads]

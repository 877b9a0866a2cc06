"""The alignment heads of an exported model: which heads they are, and their numbers in that model."""

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
"""Programs that return attention with a translation report, for each subword, that of the step which outputs it."""

AligningHead = tuple[int, int]
"""Layer and original number of a cross-attention head."""


def aligning_heads(rows: Path, shape: ModelShape) -> list[AligningHead]:
    """Alignment heads in a table of `heads alignment_heads`, lowest AER first; if none aligns, the best head alone.

    Raises UserError if the file is not such a table, or is of another model.
    """
    try:
        found = [
            (float(row["aer"]), (int(row["layer"]), int(row["head"])), row["aligns"] == "1")
            for row in read_tsv(rows)
            if row["step"] == STEP
        ]
    except (LookupError, ValueError) as error:
        raise UserError(
            f"{rows} is not a table of alignment heads ({error!r}): give one that heads alignment_heads wrote."
        ) from None
    live = {(layer, head) for _, layer, head in shape.heads(("dec_enc",))}
    if {head for _, head, _ in found} != live:
        raise UserError(
            f"{rows} does not list exactly the live cross-attention heads of this model for step {STEP}: measure them "
            "with python -m heads alignment_heads."
        )
    ordered = sorted(found)
    return [head for _, head, aligns in ordered if aligns] or [head for _, head, _ in ordered[:1]]


def aligning_first(model: Transformer, heads: Sequence[AligningHead]) -> tuple[Transformer, list[list[int]]]:
    """An equivalent model whose alignment heads come first in the best head's layer, and the new places of `heads`.

    The best head is the first of `heads`. A place is a layer and a position among its live heads.
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

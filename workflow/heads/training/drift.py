"""How far sentence vectors move from those of the model that a training began with.

This is the only possible measure, as there are no reference vectors for sentences.
"""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn

from heads.model.encoder import Encoder
from heads.model.sublayers import Gates
from heads.text.batches import Batch


def beginning(model: Encoder, device: torch.device) -> Encoder | None:
    """A frozen copy of a model that embeds sentences; None for any other model."""
    if not model.shape.embeds:
        return None
    return deepcopy(model).to(device).eval().requires_grad_(requires_grad=False)


def drift(model: nn.Module, first: Encoder, batch: Batch, gates: Gates | None) -> Tensor:
    """One minus the cosine of both models' sentence vectors [B] for a batch; gates apply to the heads of `model`."""
    given = (batch.source, batch.source_mask, None)
    with torch.no_grad():
        wanted = first(*given)
    found: Tensor = model(*given, gates)
    cosines: Tensor = (found * wanted).sum(-1)[:, 0]
    return 1 - cosines

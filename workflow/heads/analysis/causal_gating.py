"""Causal head gating: which heads facilitate, interfere or are irrelevant (Nam et al. 2025, 2505.13737).

The model's weights are frozen; a soft gate on each head is fitted to the loss on a text. Starting from this fit, it is
fitted twice more, once nudged towards open and once towards closed. A head facilitates if its gate stays open when
nudged towards closed, interferes if it closes when nudged towards open, and is irrelevant if it follows both nudges.
Nothing is removed from the model: a gate only scales the output of a head.
"""

from collections.abc import Sequence
from itertools import cycle, islice

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from heads.base.columns import CAUSAL_COLUMNS
from heads.config.analyses import CausalSettings
from heads.model.encoder import Encoder
from heads.text.batches import Batch

FACILITATES, INTERFERES, IRRELEVANT = "facilitates", "interferes", "irrelevant"

Logits = dict[str, list[Tensor]]
Row = dict[str, str | int | float]


def causal_rows(model: Encoder, batches: Sequence[Batch], settings: CausalSettings) -> list[Row]:
    """One row as in CAUSAL_COLUMNS for each live head. Batches are shuffled; the model is not changed."""
    # In a text sorted by length, the last updates would otherwise see only the longest sentences.
    order = np.random.default_rng(1).permutation(len(batches))
    batches = [batches[place] for place in order]
    first = {
        kind: [torch.full((len(heads),), settings.first_logit) for heads in layers]
        for kind, layers in model.shape.live_heads.items()
    }
    fitted = _fit(model, batches, first, 0.0, settings)
    opened = _fit(model, batches, fitted, -settings.nudge, settings)
    closed = _fit(model, batches, fitted, settings.nudge, settings)
    rows: list[Row] = []
    for kind, layer, head in model.shape.heads():
        place = model.shape.live_heads[kind][layer].index(head)
        gate, *nudged = (float(torch.sigmoid(found[kind][layer][place])) for found in (fitted, opened, closed))
        cells: tuple[str | int | float, ...] = (kind, layer, head, gate, *nudged, sum(nudged) / 2, effect_of(*nudged))
        rows.append(dict(zip(CAUSAL_COLUMNS, cells, strict=True)))
    return rows


def effect_of(nudged_open: float, nudged_closed: float) -> str:
    """The effect of a head, from its gate under each nudge."""
    if nudged_closed >= 1 / 2:
        return FACILITATES
    return INTERFERES if nudged_open < 1 / 2 else IRRELEVANT


def _fit(model: Encoder, batches: Sequence[Batch], start: Logits, nudge: float, settings: CausalSettings) -> Logits:
    """Logits of the gates after `settings.updates` updates; nudge: above 0 towards closed, below towards open."""
    device = model.projection.weight.device
    logits = {kind: [one.clone().to(device).requires_grad_() for one in layers] for kind, layers in start.items()}
    flat = [one for layers in logits.values() for one in layers if len(one)]
    optimizer = torch.optim.Adam(flat, lr=settings.learning_rate)
    for batch in islice(cycle(batches), settings.updates):
        with torch.enable_grad():
            pushed = torch.cat(flat).clamp(-settings.farthest_logit, settings.farthest_logit).sum()
            loss = _loss(model, batch.to(device), logits) + nudge * pushed
        # For the gates alone, so that weights gather no gradients.
        for one, gradient in zip(flat, torch.autograd.grad(loss, flat), strict=True):
            one.grad = gradient
        optimizer.step()
    return {kind: [one.detach().cpu() for one in layers] for kind, layers in logits.items()}


def _loss(model: Encoder, batch: Batch, logits: Logits) -> Tensor:
    """Mean loss per token under soft gates."""
    gates = {kind: [torch.sigmoid(one) for one in layers] for kind, layers in logits.items()}
    states = model(batch.source, batch.source_mask, batch.target_input, gates)
    scores = model.projection(states[batch.target_mask])
    return F.cross_entropy(scores, batch.target_output[batch.target_mask])

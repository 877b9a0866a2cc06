"""Importance of heads: first-order change of the loss when a head is masked (Michel et al. 2019, sec. 4.1).

L(x) is the training loss of a sentence pair x: the label-smoothed cross-entropy in nats, summed over its target tokens.
With the output A of a head, the loss changes by c = A^T dL/dA at every position where the head attends; the sum of c
over the positions is dL/dgate. Four scores go by this name; they differ only in what is summed before the absolute
value is taken:

    example  E_x |sum over positions of c|, as the paper writes it
    token    |c| at every position, as the authors' released code does
    batch    |sum over the sentences of a batch|, as later code does; it depends on how sentences are batched
    signed   no absolute value

All four are divided by the number of sentences, so their unit is nats per sentence, and example lies between |signed|
and token. (The released code divides by tokens instead, the same number for all heads of a layer.) The normalised score
is divided by the l2 norm over the heads of its layer; the paper ranks heads by it.

B batch, Q queries, H heads of a layer, E width of one head.
"""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

from heads.base.columns import IMPORTANCE_COLUMNS
from heads.base.names import ATTENTIONS
from heads.model.attention import Trace
from heads.model.encoder import Encoder
from heads.text.batches import Batch

FORMS = ("example", "token", "batch", "signed")

Row = dict[str, str | int | float]


def importance_rows(model: Encoder, batches: Iterable[Batch], *, label_smoothing: float) -> list[Row]:
    """One row for each form and live head of a model in evaluation mode, heads under their original numbers.

    One forward and one backward pass per batch serve all forms. Raises ValueError if there are no sentences.
    """
    device, shape = model.projection.weight.device, model.shape
    sums = {
        (kind, layer): torch.zeros(len(FORMS), len(live), dtype=torch.float64, device=device)
        for kind in ATTENTIONS
        for layer, live in enumerate(shape.live_heads[kind])
        if live
    }
    sentences = 0
    for batch in batches:
        on_device = batch.to(device)
        sentences += len(on_device.source)
        for name, change in first_order(model, on_device, label_smoothing).items():
            by_sentence = change.sum(2)
            signed = by_sentence.sum(0)
            sums[name] += torch.stack([by_sentence.abs().sum(0), change.abs().sum((0, 2)), signed.abs(), signed])
    if not sentences:
        raise ValueError("importance needs at least one sentence")
    rows: list[Row] = []
    for (kind, layer), total in sums.items():
        mean = total / sentences
        normalised = F.normalize(mean, dim=1, eps=torch.finfo(torch.float64).tiny)
        for form, values, shares in zip(FORMS, mean.tolist(), normalised.tolist(), strict=True):
            for cells in zip(shape.live_heads[kind][layer], values, shares, strict=True):
                rows.append(dict(zip(IMPORTANCE_COLUMNS, (kind, layer, cells[0], form, *cells[1:]), strict=True)))
    return rows


def first_order(model: Encoder, batch: Batch, label_smoothing: float) -> dict[tuple[str, int], Tensor]:
    """For each layer with live heads, A^T dL/dA [B, H, Q] in float64; zero at padding, which no loss depends on."""
    live = model.shape.live_heads
    # Gates of one change nothing, but give gradients even in a model whose weights are frozen.
    ones = model.projection.weight.detach().new_ones
    gates = {kind: [ones(len(heads)).requires_grad_() for heads in live[kind]] for kind in ATTENTIONS}
    trace: Trace = {}
    with torch.enable_grad():
        states = model(batch.source, batch.source_mask, batch.target_input, gates, trace)
        logits = model.projection(states[batch.target_mask])
        targets = batch.target_output[batch.target_mask]
        loss = F.cross_entropy(logits, targets, label_smoothing=label_smoothing, reduction="sum")
    names = [(kind, layer) for kind in ATTENTIONS for layer, heads in enumerate(live[kind]) if heads]
    outputs = [trace[f"{kind}.{layer}.heads"] for kind, layer in names]
    gradients = torch.autograd.grad(loss, outputs) if outputs else ()
    return {
        name: (output.detach().double() * gradient.double()).sum(-1)
        for name, output, gradient in zip(names, outputs, gradients, strict=True)
    }

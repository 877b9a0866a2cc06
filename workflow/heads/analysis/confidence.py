"""Confidence of heads: their mean maximum attention weight over tokens (Voita et al. 2019, sec. 4).

The paper excludes the end-of-sentence token (EOS), as it is not a real token. Here it is excluded twice: as a query
(the source's EOS; the decoder's last step, which produces EOS) and as a key (the maximum is taken over the other
tokens, and weights are not renormalised). So a head that rests on EOS is not confident. The start token and the
separators of an example are excluded likewise.

The decoder reads the reference. Its first step counts, although its self-attention sees only the start token: it adds
the same to every head and does not change their order.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from heads.analysis.attention_weights import live_weights
from heads.base.columns import CONFIDENCE_COLUMNS
from heads.base.names import ATTENTIONS
from heads.model.attention import Trace
from heads.model.encoder import Encoder
from heads.text.batches import Batch
from heads.text.special_ids import BOS, EOS

Row = dict[str, str | int | float | None]


@torch.inference_mode()
def confidence(model: Encoder, batches: Iterable[Batch]) -> list[Row]:
    """One row for each live head of a model in evaluation mode; the result does not depend on the batches.

    `tokens` is the number of tokens that the mean is over; without any, confidence is None.
    """
    device = next(model.parameters()).device
    heads = {kind: model.shape.heads((kind,)) for kind in ATTENTIONS}
    sums = {kind: torch.zeros(len(heads[kind]), dtype=torch.float64, device=device) for kind in ATTENTIONS}
    tokens = dict.fromkeys(ATTENTIONS, 0)
    for batch in batches:
        on_device = batch.to(device)
        trace: Trace = {}
        model(on_device.source, on_device.source_mask, on_device.target_input, trace=trace)
        for kind, (queries, keys) in real_tokens(on_device).items():
            tokens[kind] += int(queries.sum())
            weights = live_weights(trace, model.shape, kind)
            if weights is not None:
                largest = weights.double().masked_fill(~keys[:, None, None, :], 0).amax(-1)
                sums[kind] += largest.masked_fill(~queries[:, None, :], 0).sum((0, 2))
    rows: list[Row] = []
    for kind in ATTENTIONS:
        count = tokens[kind]
        for head, total in zip(heads[kind], sums[kind].tolist(), strict=True):
            mean = total / count if count else None
            rows.append(dict(zip(CONFIDENCE_COLUMNS, (*head, mean, count), strict=True)))
    return rows


def real_tokens(batch: Batch) -> dict[str, tuple[Tensor, Tensor]]:
    """For each kind of attention, masks of the positions that attend [B, Q] and are attended to [B, K]."""
    source = batch.source_mask & (batch.source != EOS) & (batch.source != BOS)
    steps = batch.target_mask & (batch.target_output != EOS)
    return {"enc_self": (source, source), "dec_self": (steps, batch.target_mask), "dec_enc": (steps, source)}

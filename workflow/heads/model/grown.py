"""Grow decoder self-attention in a translation model whose decoder has recurrent units instead."""

from dataclasses import replace

import torch
from torch import nn

from heads.base.files import UserError
from heads.model.encoder import Encoder
from heads.model.shape import PASTS
from heads.model.transformer import Transformer

OUTPUT_SCALE = 0.3
"""Factor on the new attention's output weights, so that its output is small for the layers around it."""


def with_self_attention(model: Encoder, seed: int) -> tuple[Transformer, tuple[nn.Parameter, ...]]:
    """The model with new causal self-attention in place of each recurrent unit, and the new parameters.

    The norms of the recurrent units and all other weights are kept. Every decoder layer gets the original number of
    heads per layer. seed: for the new weights. Raises UserError for a model without recurrent units.
    """
    old = model.shape
    if not isinstance(model, Transformer) or not old.recurrent:
        raise UserError("baseline.decoder: self_attention needs a decoder with recurrent units, and this one has none.")
    torch.manual_seed(seed)
    heads = (tuple(range(old.original_heads)),) * old.decoder_layers
    grown = Transformer(replace(old, decoder_past=PASTS[0], live_heads={**old.live_heads, "dec_self": heads}))
    kept = {
        name.replace(".recurrence_residual.", ".self_residual."): value
        for name, value in model.state_dict().items()
        if ".recurrence." not in name
    }
    grown.to(model.projection.weight).load_state_dict(kept, strict=False)
    new = {name: parameter for name, parameter in grown.named_parameters() if name not in kept}
    with torch.no_grad():
        for name, parameter in new.items():
            if ".output." in name:
                parameter.mul_(OUTPUT_SCALE)
    return grown.train(model.training), tuple(new.values())

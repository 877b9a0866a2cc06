"""Take subwords out of a model: the rows of its embeddings and of its output matrix go with them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from heads.model.encoder import Encoder
from heads.model.folder import model_of

ROWS_OF = {
    "source_embedding.subwords.weight": 0,
    "target_embedding.subwords.weight": 1,
    "projection.weight": 1,
    "projection.bias": 1,
}
"""The weights with a row for each subword, and of which side: 0 source, 1 target."""


def with_subwords(model: Encoder, source: Sequence[int], target: Sequence[int]) -> Encoder:
    """The model with these ids of source and target alone, in this order, on the CPU and in evaluation mode.

    Logits of the target ids that stay are the same. An encoder without a decoder keeps its labels.
    """
    shape, kept = model.shape, (source, target)
    changes: dict[str, Any] = {"source_subwords": len(source)}
    if not shape.encoder_only:
        named = shape.named_subwords[1]
        first, start = (target.index(number) if number else 0 for number in (shape.first_subword, shape.start_subword))
        changes |= {"target_subwords": len(target), "first_subword": first, "start_subword": start}
        changes["nameless_subwords"] = sum(number >= named for number in target)
    smaller = model_of(replace(shape, **changes))
    weights = {name: value.detach().cpu() for name, value in model.state_dict().items()}
    for name, side in ROWS_OF.items():
        if name in weights and not (side and shape.encoder_only):
            weights[name] = weights[name][torch.tensor(kept[side])]
    smaller.load_state_dict(weights)
    return smaller.eval()

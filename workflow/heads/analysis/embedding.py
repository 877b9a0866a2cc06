"""Vectors of sentences under any gates.

No file is opened here. N sentences, D width.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from heads.model.encoder import Encoder
from heads.model.sublayers import Gates
from heads.text.batches import cut, pad
from heads.text.vocabulary import Tokens

BATCH_TOKENS = 4096


@torch.inference_mode()
def vectors(
    model: Encoder, examples: Tokens, device: torch.device, limit: int | None = None, gates: Gates | None = None
) -> list[NDArray[np.float32]]:
    """The vector [D] of each of the first `limit` examples, by a model in evaluation mode."""
    lengths = examples.lengths[:limit]
    found: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(lengths)
    for members in cut(np.argsort(lengths, kind="stable"), lengths, BATCH_TOKENS):
        source, mask = (part.to(device) for part in pad([examples[i] for i in members]))
        made = model(source, mask, None, gates)[:, 0].float().cpu().numpy()
        for member, vector in zip(members, made, strict=True):
            found[member] = vector
    return found

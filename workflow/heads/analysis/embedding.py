"""Sentence vectors of a model under any gates.

This module opens no files. N sentences, D width.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from heads.model.classifier import ExampleEncoder
from heads.model.encoder import Encoder
from heads.model.prefixes import Prefixes
from heads.model.sublayers import Gates
from heads.text.batches import cut, pad
from heads.text.vocabulary import Tokens

BATCH_TOKENS = 4096


@torch.inference_mode()
def vectors(
    model: Encoder,
    examples: Tokens,
    device: torch.device,
    limit: int | None = None,
    gates: Gates | None = None,
    *,
    prefixes: Prefixes | None = None,
) -> list[NDArray[np.float32]]:
    """The vector [D] of each of the first `limit` examples, by a model in evaluation mode.

    prefixes: of this model and these examples, if they are read under many gates.
    """
    assert isinstance(model, ExampleEncoder)
    encode = (prefixes or Prefixes(model, room=0)).encode
    lengths = examples.lengths[:limit]
    found: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(lengths)
    for number, members in enumerate(cut(np.argsort(lengths, kind="stable"), lengths, BATCH_TOKENS)):
        source, mask = (part.to(device) for part in pad([examples[i] for i in members]))
        made = model.summed_up(encode(number, source, mask, gates), mask)[:, 0].float().cpu().numpy()
        for member, vector in zip(members, made, strict=True):
            found[member] = vector
    return found

"""Dropout whose random numbers cost little on a CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

LEVELS = 2**16
"""A value is dropped where 16 random bits are below its share of these, so shares are multiples of 1 / 65536."""


def drop(states: Tensor, share: float, *, training: bool) -> Tensor:
    """`states` with this share of values, drawn anew, set to zero and the others divided by 1 - share."""
    if not training or share == 0:
        return states
    if states.device.type != "cpu":
        return F.dropout(states, share)
    # Four values a draw: torch's own dropout draws for each, which is an eighth of an update.
    words = torch.empty(-(-states.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[: states.numel()].view(states.shape)
    kept = bits >= round(share * LEVELS) - LEVELS // 2
    return states * kept.to(states.dtype).mul_(1 / (1 - share))

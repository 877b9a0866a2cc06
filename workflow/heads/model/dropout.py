"""Dropout with random numbers that are cheap on a CPU."""

import torch
import torch.nn.functional as F
from torch import Tensor

LEVELS = 2**16
"""A value is dropped if its 16 random bits are below `share` * LEVELS, so shares are multiples of 1 / 65536."""


def drop(states: Tensor, share: float, *, training: bool) -> Tensor:
    """Set a random share of `states` to zero and divide the others by 1 - share; no change outside training."""
    if not training or share == 0:
        return states
    if states.device.type != "cpu":
        return F.dropout(states, share)
    # Each draw serves four values: torch's own dropout draws once per value, which takes an eighth of an update.
    words = torch.empty(-(-states.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[: states.numel()].view(states.shape)
    kept = bits >= round(share * LEVELS) - LEVELS // 2
    return states * kept.to(states.dtype).mul_(1 / (1 - share))

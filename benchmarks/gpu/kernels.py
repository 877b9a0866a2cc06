"""How long attention takes by each of torch's kernels, on sentences of real lengths, forwards and backwards.

Sentences of some twenty subwords fill little of a tile of 128, so that the kernel that is best for long texts may not
be for them.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from measuring import Sizes, seconds
from torch import Tensor

from heads.text.batches import Pairs

DROPOUT = 0.1
TIMES = 12


def attention_rows(sizes: Sizes, pairs: Pairs, device: torch.device) -> Iterator[dict[str, Any]]:
    """A row for each kernel that this device has: encoder self-attention of one update, once."""
    members = pairs.epoch(sizes.batch_tokens[0], 1, 0)[0]
    lengths = np.sort(pairs.source.lengths[members] + 1)
    starts = torch.tensor([0, *np.cumsum(lengths).tolist()], dtype=torch.int32, device=device)
    longest, heads = int(lengths[-1]), sizes.model.heads
    half = torch.bfloat16 if device.type == "cuda" else torch.float32
    flat = (int(lengths.sum()), heads, sizes.model.width // heads)
    padded = (len(lengths), heads, longest, flat[-1])
    mask = (torch.arange(longest) < torch.tensor(lengths)[:, None])[:, None, None].to(device)

    def flash(*states: Tensor) -> Tensor:
        found: Tensor = torch.ops.aten._flash_attention_forward(
            *states, starts, starts, longest, longest, DROPOUT, is_causal=False, return_debug_mask=False
        )[0]
        return found

    def efficient(*states: Tensor) -> Tensor:
        each = (state[None] for state in states)
        found: Tensor = torch.ops.aten._efficient_attention_forward(
            *each, None, starts, starts, longest, longest, DROPOUT, 0, compute_log_sumexp=True
        )[0]
        return found

    def chosen(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(queries, keys, values, mask, DROPOUT)

    ways: dict[str, tuple[Callable[..., Tensor], tuple[int, ...]]] = {"torch's choice, padded": (chosen, padded)}
    if device.type == "cuda":
        ways |= {"flash, as trainings use it": (flash, flat), "memory-efficient, without padding": (efficient, flat)}
    for name, (way, shape) in ways.items():
        yield {"attention": name, "sentences": len(lengths), "subwords": flat[0], **timed(way, shape, half, device)}


def timed(
    way: Callable[..., Tensor], shape: tuple[int, ...], half: torch.dtype, device: torch.device
) -> dict[str, Any]:
    """Milliseconds forwards and backwards; what went wrong, if this torch has the kernel otherwise."""
    states = [torch.randn(shape, device=device, dtype=half, requires_grad=True) for _ in range(3)]

    def both() -> None:
        found = way(*states)
        found.backward(torch.ones_like(found))

    try:
        return {"ms": 1000 * seconds(both, device, TIMES), "error": ""}
    except (RuntimeError, TypeError) as error:
        return {"ms": "", "error": str(error).partition("\n")[0]}

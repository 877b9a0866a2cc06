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

from heads.model.attention import KeyValues, attend_by_flash
from heads.text.batches import Pairs
from heads.text.packed import Spans

DROPOUT = 0.1
TIMES = 12


def attention_rows(sizes: Sizes, pairs: Pairs, device: torch.device) -> Iterator[dict[str, Any]]:
    """A row for each kernel that this device has: encoder self-attention of one update, once."""
    members = pairs.epoch(sizes.batch_tokens[0], 1, 0)[0]
    spans = Spans.of_lengths(np.sort(pairs.source.lengths[members] + 1)).to(device)
    heads, half = sizes.model.heads, torch.bfloat16 if device.type == "cuda" else torch.float32
    flat = (len(spans.places), heads, sizes.model.width // heads)
    padded = (len(spans.grid), heads, spans.longest, flat[-1])
    mask = None if spans.mask is None else spans.mask[:, None, None]

    def flash(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """As in trainings."""
        return attend_by_flash(queries, KeyValues(keys, values), spans, spans, DROPOUT, causal=False)

    def efficient(*states: Tensor) -> Tensor:
        """By the kernel for little memory, which takes sentences without padding too."""
        each, lengths = (state[None] for state in states), (spans.starts, spans.starts, spans.longest, spans.longest)
        found: Tensor = torch.ops.aten._efficient_attention_forward(
            *each, None, *lengths, DROPOUT, 0, compute_log_sumexp=True
        )[0]
        return found

    def chosen(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """By the kernel that torch chooses for padded sentences."""
        return F.scaled_dot_product_attention(queries, keys, values, mask, DROPOUT)

    ways: dict[str, tuple[Callable[..., Tensor], tuple[int, ...]]] = {"torch's choice, padded": (chosen, padded)}
    if device.type == "cuda":
        ways |= {"flash, as trainings use it": (flash, flat), "memory-efficient, without padding": (efficient, flat)}
    for name, (way, shape) in ways.items():
        yield {"attention": name, "sentences": len(spans.grid), "subwords": flat[0], **timed(way, shape, half, device)}


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

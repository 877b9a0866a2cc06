"""Learnt biases of attention by head and distance, in the place of positions (Raffel et al. 2020, sec. 2.1).

B batch, H heads, Q/K query and key length.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heads.model.shape import ModelShape


class DistanceBias(nn.Module):
    """What is added to the products of queries and keys, by head and by bucket of their distance."""

    buckets: Tensor

    def __init__(self, buckets: int, farthest: int, heads: int, *, causal: bool) -> None:
        """heads: number of columns. causal: whether keys after their query, which it does not see, need no bucket."""
        super().__init__()
        self.farthest = farthest
        self.weight = nn.Parameter(torch.zeros(buckets, heads))
        self.register_buffer("buckets", bucket_numbers(buckets, farthest, causal=causal), persistent=False)

    def forward(self, distances: Tensor, columns: Sequence[int]) -> Tensor:
        """Biases [B, H, Q, K] at distances [B, Q, K], a key's place less its query's, of the heads in these columns."""
        buckets = self.buckets[distances.clamp(-self.farthest, self.farthest) + self.farthest]
        weight = self.weight if len(columns) == self.weight.shape[1] else self.weight[:, list(columns)]
        return F.embedding(buckets, weight).movedim(-1, 1)


def bucket_numbers(buckets: int, farthest: int, *, causal: bool) -> Tensor:
    """The bucket of each distance [2 farthest + 1] from -farthest on; beyond, they are those at the ends.

    Half of the buckets of a side have one distance each, the others are of equal widths on a logarithmic scale. A
    causal bias has all of its buckets on one side.
    """
    distances = torch.arange(-farthest, farthest + 1)
    away = (-distances).clamp(min=0) if causal else distances.abs()
    side = buckets if causal else buckets // 2
    exact = side // 2
    # In float32, as in T5's code: distances on the edge of a bucket depend on rounding.
    further = torch.log(away.float() / exact) / math.log(farthest / exact) * (side - exact)
    found = torch.where(away < exact, away, (exact + further.clamp(min=0).long()).clamp(max=side - 1))
    return found if causal else found + side * (distances > 0)


def distances_of(shape: ModelShape, heads: int, *, causal: bool) -> DistanceBias | None:
    """Biases of distances for so many heads; None if the shape has none."""
    if not shape.distance_buckets:
        return None
    return DistanceBias(shape.distance_buckets, shape.farthest_distance, heads, causal=causal)


def shared_distances(shape: ModelShape, kind: str) -> DistanceBias | None:
    """Biases of distances that all layers of this kind of self-attention share; None if the shape has none."""
    return (
        None if shape.distances_by_layer else distances_of(shape, len(shape.sharing(kind)), causal=kind != "enc_self")
    )


def all_distances(length: int, device: torch.device) -> Tensor:
    """The distances [Q, K] between all places of a sentence: a key's place less its query's."""
    places = torch.arange(length, device=device)
    return places - places[:, None]


def tables_of(shape: ModelShape) -> dict[str, tuple[int, ...]]:
    """The original heads that each table of biases has columns for, by the name of its weight in a model."""
    found: dict[str, tuple[int, ...]] = {}
    for stack, kind in (("encoder", "enc_self"), ("decoder", "dec_self")) if shape.distance_buckets else ():
        if shape.distances_by_layer:
            found |= {f"{stack}.{n}.distances.weight": live for n, live in enumerate(shape.live_heads[kind])}
        elif shape.layers(kind) or stack == "encoder":
            found[f"{stack}_distances.weight"] = shape.sharing(kind)
    return found

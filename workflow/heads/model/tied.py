"""Parts of a model whose matrix is that of an embedding, which alone has it as its own, so that it is saved once."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heads.model.linear import linear


class Tied(nn.Module):
    """What is made with the matrix of an embedding."""

    def __init__(self, embedding: nn.Embedding | TiedEmbedding) -> None:
        super().__init__()
        # Inside a tuple torch takes it for no part of this one.
        self._owner = (embedding,)

    @property
    def weight(self) -> Tensor:
        """The embedding's matrix [V, D]."""
        return self._owner[0].weight


class TiedLinear(Tied):
    """A linear map with a bias of its own."""

    def __init__(self, embedding: nn.Embedding | TiedEmbedding) -> None:
        super().__init__(embedding)
        self.bias = nn.Parameter(torch.zeros(len(embedding.weight)))

    def forward(self, states: Tensor) -> Tensor:
        """[..., D] to [..., V]."""
        return linear(states, self.weight, self.bias)


class TiedEmbedding(Tied):
    """The same embedding once more."""

    def forward(self, ids: Tensor) -> Tensor:
        """Ids [...] to [..., D]."""
        return F.embedding(ids, self.weight)

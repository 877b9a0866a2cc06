"""Modules that share the matrix of an embedding, which alone owns it, so that it is saved once."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heads.model.linear import linear


class Tied(nn.Module):
    """Base class of modules that use the matrix of an embedding."""

    def __init__(self, embedding: nn.Embedding | TiedEmbedding) -> None:
        super().__init__()
        # Inside a tuple, torch does not register it as a submodule.
        self._owner = (embedding,)

    @property
    def weight(self) -> Tensor:
        """The embedding's matrix [V, D]."""
        return self._owner[0].weight


class TiedLinear(Tied):
    """A linear map with the matrix of an embedding and a bias of its own."""

    def __init__(self, embedding: nn.Embedding | TiedEmbedding) -> None:
        super().__init__(embedding)
        self.bias = nn.Parameter(torch.zeros(len(embedding.weight)))

    def forward(self, states: Tensor) -> Tensor:
        """Map [..., D] to [..., V]."""
        return linear(states, self.weight, self.bias)


class TiedEmbedding(Tied):
    """An embedding with the matrix of another one."""

    def forward(self, ids: Tensor) -> Tensor:
        """Embed ids [...] as [..., D]."""
        return F.embedding(ids, self.weight)

"""Encoder that maps a sentence to one vector, as in Sentence-BERT (Reimers and Gurevych 2019, sec. 3).

Letters of shapes as in `heads.model.encoder`.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from heads.model.attention import Trace
from heads.model.classifier import ExampleEncoder
from heads.model.shape import ModelShape


class SentenceEncoder(ExampleEncoder):
    """Encoder whose sentence vector is the mean of the last states, normalised to unit length."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__(shape)
        self.projection = nn.Identity()  # type: ignore[assignment] # the vector is the answer
        self.initialise()

    def summed_up(self, states: Tensor, source_mask: Tensor, trace: Trace | None = None) -> Tensor:  # noqa: ARG002
        """The sentence vectors [B, 1, D]. The mean includes the start and the separator, as in the paper."""
        real = source_mask[:, :, None].to(states.dtype)
        return F.normalize((states * real).sum(1) / real.sum(1), dim=-1)[:, None]

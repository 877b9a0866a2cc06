"""Models that are an encoder alone: a classifier as in BERT (Devlin et al. 2019), and a sentence encoder.

The ids of an example are `[start] premise [separator] hypothesis [separator]`, or one sentence between start and
separator; start is BOS and separator is EOS. Letters of shapes as in `heads.model.encoder`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heads.model.attention import Trace
from heads.model.dropout import drop
from heads.model.encoder import Embedding, Encoder, final_norm
from heads.model.linear import Linear
from heads.model.shape import ModelShape
from heads.model.sublayers import Gates, stack_of
from heads.text.special_ids import EOS


class ExampleEmbedding(Embedding):
    """Embeddings of subwords, of positions, and of the sentence, first or second, that a subword is in."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__(shape, shape.source_subwords)
        self.types = self.table(shape.token_types) if shape.token_types else None

    def vectors(self, ids: Tensor) -> Tensor:
        """Vectors [B, S, D] of ids [B, S], without positions."""
        subwords = super().vectors(ids)
        return subwords if self.types is None else subwords + self.types(token_types(ids))


def token_types(ids: Tensor) -> Tensor:
    """Sentence number of each of ids [B, S] in its example: 0 up to and including the first separator, then 1."""
    ends = (ids == EOS).long()
    return (ends.cumsum(1) - ends).clamp(max=1)


class ExampleEncoder(Encoder):
    """Base class of encoder-only models; a subclass defines how the last states become one state per example."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__(shape)
        self.source_embedding = ExampleEmbedding(shape)
        self.encoder = stack_of(shape, shape.encoder_layers, self.encoder_distances)
        self.encoder_norm = final_norm(shape)

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        target: Tensor | None = None,  # noqa: ARG002 - nothing stands before the one answer
        gates: Gates | None = None,
        trace: Trace | None = None,
    ) -> Tensor:
        """The single state [B, 1, D] of each example [B, S], from which `projection` computes its answer."""
        return self.pool(self.encode(source, source_mask, gates, trace), source_mask, trace)

    def pool(self, states: Tensor, source_mask: Tensor, trace: Trace | None = None) -> Tensor:
        """Reduce the last states [B, S, D] of examples with this mask [B, S] to a single state [B, 1, D] each."""
        raise NotImplementedError


class Classifier(ExampleEncoder):
    """Encoder that predicts the label of an example from its pooled first state."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__(shape)
        self.pooler = Linear(shape.width, shape.width)
        self.projection = Linear(shape.width, shape.labels)
        self.initialise()

    def pool(self, states: Tensor, source_mask: Tensor, trace: Trace | None = None) -> Tensor:  # noqa: ARG002
        """The pooled state [B, 1, D] of the start token."""
        first = states[:, :1]
        if trace is not None:
            trace["pooler.input"] = first
        pooled: Tensor = self.pooler(first).tanh()
        return drop(pooled, self.shape.dropout, training=self.training)


class SentenceEncoder(ExampleEncoder):
    """Encoder with one vector of unit length for a sentence (Reimers and Gurevych 2019).

    By the shape's `pooling` it is the mean of the last states, the first of them, or their largest numbers.
    """

    def __init__(self, shape: ModelShape) -> None:
        super().__init__(shape)
        self.projection = nn.Identity()  # type: ignore[assignment] # the vector is the answer
        self.initialise()

    def pool(self, states: Tensor, source_mask: Tensor, trace: Trace | None = None) -> Tensor:  # noqa: ARG002
        """The sentence vectors [B, 1, D]. Mean and maximum include the start and the separator, as in the paper."""
        if self.shape.pooling == "cls":
            return F.normalize(states[:, :1], dim=-1)
        if self.shape.pooling == "max":
            return F.normalize(states.masked_fill(~source_mask[:, :, None], -torch.inf).amax(1), dim=-1)[:, None]
        real = source_mask[:, :, None].to(states.dtype)
        return F.normalize((states * real).sum(1) / real.sum(1), dim=-1)[:, None]

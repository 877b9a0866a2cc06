"""The encoder with a pooler and a classifier behind it, as BERT has it (Devlin et al. 2019), for sentences or pairs.

Ids of an example are `[start] premise [separator] hypothesis [separator]`, or one sentence between start and separator:
start is BOS and separator EOS. Letters of shapes as in `heads.model.encoder`.
"""

from __future__ import annotations

from torch import Tensor, nn

from heads.model.attention import Trace
from heads.model.dropout import drop
from heads.model.encoder import Embedding, Encoder, final_norm
from heads.model.linear import Linear
from heads.model.shape import ModelShape
from heads.model.sublayers import Gates, Layer
from heads.text.special_ids import EOS


class ExampleEmbedding(Embedding):
    """Embeddings of subwords and positions, and of what sentence a subword is of."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__(shape, shape.source_subwords)
        self.types = self.table(shape.token_types) if shape.token_types else None

    def vectors(self, ids: Tensor) -> Tensor:
        """Of ids [B, S], without positions [B, S, D]."""
        subwords = super().vectors(ids)
        return subwords if self.types is None else subwords + self.types(token_types(ids))


def token_types(ids: Tensor) -> Tensor:
    """Which sentence of its example each of ids [B, S] is of: 0 up to and with the first separator, then 1."""
    ends = (ids == EOS).long()
    return (ends.cumsum(1) - ends).clamp(max=1)


class ExampleEncoder(Encoder):
    """What models that read examples have in common: all but what is made of the last states."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__(shape)
        self.source_embedding = ExampleEmbedding(shape)
        self.encoder = nn.ModuleList(Layer(shape, i, decoder=False) for i in range(shape.encoder_layers))
        self.encoder_norm = final_norm(shape)

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        target: Tensor | None = None,  # noqa: ARG002 - nothing stands before the one answer
        gates: Gates | None = None,
        trace: Trace | None = None,
    ) -> Tensor:
        """The one state [B, 1, D] of examples [B, S], of which `projection` makes their answer.

        target: not read, as a label is predicted at once.
        """
        return self.summed_up(self.encode(source, source_mask, gates, trace), source_mask, trace)

    def summed_up(self, states: Tensor, source_mask: Tensor, trace: Trace | None = None) -> Tensor:
        """The one state [B, 1, D] of the last states [B, S, D] of examples with this mask [B, S]."""
        raise NotImplementedError


class Classifier(ExampleEncoder):
    """Encoder of an example whose first state, pooled, predicts its label."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__(shape)
        self.pooler = Linear(shape.width, shape.width)
        self.projection = Linear(shape.width, shape.labels)
        self.initialise()

    def summed_up(self, states: Tensor, source_mask: Tensor, trace: Trace | None = None) -> Tensor:  # noqa: ARG002
        """That of the start alone, pooled."""
        first = states[:, :1]
        if trace is not None:
            trace["pooler.input"] = first
        pooled: Tensor = self.pooler(first).tanh()
        return drop(pooled, self.shape.dropout, training=self.training)

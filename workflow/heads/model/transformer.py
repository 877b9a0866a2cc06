"""The encoder-decoder Transformer (Vaswani et al. 2017), pre-norm or post-norm, with one gate per head.

Letters of shapes as in `heads.model.encoder`, and T target length, N hypotheses of a sentence.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from heads.model.attention import Trace
from heads.model.distances import shared_distances
from heads.model.encoder import Embedding, Encoder, TiedLinear, final_norm, pass_over, to_attention
from heads.model.linear import Linear
from heads.model.shape import ModelShape
from heads.model.sublayer_cache import ROOM, SublayerCache
from heads.model.sublayers import Gates, Step, parts_of, run_through, stack_of
from heads.text.packed import Packed, Spans


@dataclass
class DecoderCache:
    """The cache of incremental decoding for B sentences with N hypotheses each, all extended in the same step."""

    kept: list[SublayerCache]
    """One cache for each sub-layer of the decoder."""
    source_mask: Tensor
    seen: Tensor
    """[B, N, K]: which of the subwords so far are in the past of each hypothesis; see `SelfAttentionCache`."""
    room: int
    """Number of subwords that there is room for."""
    steps: int = 0
    written: Tensor | None = None
    """[B, 1, K]: the step in which each of the subwords so far was new, if the model has biases of distances."""

    def reorder(self, parents: Tensor) -> None:
        """Let the hypothesis at each place [B, N] of a sentence continue the one at place `parents`."""
        self.seen = self.seen.gather(1, parents[:, :, None].expand_as(self.seen))
        for kept in self.kept:
            kept.reorder(parents)

    def keep(self, rows: Tensor) -> None:
        """Keep only these sentences, in that order."""
        self.source_mask = self.source_mask[rows]
        for kept in self.kept:
            kept.keep(rows)
        self._tidy(rows)

    def _tidy(self, rows: Tensor) -> None:
        """Drop from these sentences' past the subwords that none of their hypotheses has any more."""
        seen = self.seen[rows]
        used = seen.any(1)
        # Sentences that need fewer keys than others keep some that no hypothesis sees.
        places = used.byte().sort(dim=1, stable=True, descending=True).indices[:, : int(used.sum(1).max())]
        self.seen = seen.gather(2, places[:, None].expand(-1, seen.shape[1], -1))
        if self.written is not None:
            self.written = self.written[rows].gather(2, places[:, None])
        with_room = F.pad(places, (0, ROOM * seen.shape[1]))
        self.room = with_room.shape[1]
        for kept in self.kept:
            kept.tidy(rows, with_room)

    def advance(self, gates: Gates | None) -> Step:
        """Begin a decoding step; returns what the sub-layers are given in it."""
        count, places, written = self.seen.shape
        if written + places > self.room:
            self._tidy(torch.arange(count, device=self.seen.device))
        themselves = torch.eye(places, dtype=torch.bool, device=self.seen.device).expand(count, -1, -1)
        self.seen = torch.cat([self.seen, themselves], 2)
        self.steps += 1
        visible, distances = self.seen[:, None] if places > 1 else None, None
        if self.written is not None:
            newest = self.written.new_full((count, 1, places), self.steps)
            self.written = torch.cat([self.written, newest], 2)
            distances = self.written - self.steps
        mask, end = to_attention(self.source_mask), self.seen.shape[2]
        return Step(gates, mask=mask, visible=visible, end=end, distances=distances)


class Transformer(Encoder):
    """Encoder-decoder over subword ids."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__(shape)
        self.source_embedding = Embedding(shape, shape.source_subwords)
        subwords = self.source_embedding.subwords if shape.shared_embedding else shape.target_subwords
        self.target_embedding = Embedding(shape, subwords, shape.start)
        self.decoder_distances = None if shape.recurrent else shared_distances(shape, "dec_self")
        self.encoder = stack_of(shape, shape.encoder_layers, self.encoder_distances)
        self.decoder = stack_of(shape, shape.decoder_layers, self.decoder_distances, decoder=True)
        self.encoder_norm, self.decoder_norm = final_norm(shape), final_norm(shape)
        self.projection = (
            TiedLinear(self.target_embedding.subwords)
            if shape.tied_projection
            else Linear(shape.width, shape.target_subwords)
        )
        if shape.fixed_bias:
            self.projection.bias.requires_grad = False
        self.initialise()

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        real: Tensor | Spans,
        gates: Gates | None = None,
        trace: Trace | None = None,
        spans: Spans | None = None,
    ) -> Tensor:
        """Decode target ids [B, T], all at once, to states [B, T, D]; a position sees itself and earlier ones.

        real: of the source, as in `encode`. spans: of the target if nothing is padded; ids are [N], states [N, D].
        """
        states = self.target_embedding(target, spans=spans)
        states = run_through(parts_of(self.decoder), states, pass_over(real, gates, trace, memory, spans))
        if trace is not None:
            trace["decoder_norm.input"] = states
        normed: Tensor = self.decoder_norm(states)
        return normed

    def packed(self, batch: Packed, gates: Gates | None = None) -> Tensor:
        """Decoder states [N, D] at all target subwords of a batch without padding."""
        memory = self.encode(batch.source, batch.source_spans, gates)
        return self.decode(batch.target_input, memory, batch.source_spans, gates, spans=batch.target_spans)

    def start_cache(self, memory: Tensor, source_mask: Tensor, hypotheses: int = 1) -> DecoderCache:
        """An empty cache for decoding from `memory` [B, S, D] token by token, with N hypotheses per sentence."""
        seen = source_mask.new_empty(len(memory), hypotheses, 0)
        kept = [part.start(memory, hypotheses) for part in parts_of(self.decoder)]
        written = seen.new_empty(len(memory), 1, 0, dtype=torch.long) if self.shape.distance_buckets else None
        return DecoderCache(kept, source_mask, seen, ROOM * hypotheses, written=written)

    def decode_next(
        self,
        tokens: Tensor,
        cache: DecoderCache,
        gates: Gates | None = None,
        projection: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Logits [B, N, V] of the tokens after the hypotheses' newest `tokens` [B, N], which are added to the cache.

        projection: in place of the model's own, such as to a part of the vocabulary.
        """
        states = self.target_embedding(tokens.flatten()[:, None], cache.steps).view(*tokens.shape, -1)
        now = cache.advance(gates)
        for part, kept in zip(parts_of(self.decoder), cache.kept, strict=True):
            states = part.step(states, kept, now)
        logits: Tensor = (projection or self.projection)(self.decoder_norm(states))
        return logits

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        target: Tensor,
        gates: Gates | None = None,
        trace: Trace | None = None,
    ) -> Tensor:
        """Decoder states [B, T, D] for source ids [B, S] and decoder input ids [B, T]; `projection` gives logits."""
        memory = self.encode(source, source_mask, gates, trace)
        return self.decode(target, memory, source_mask, gates, trace)

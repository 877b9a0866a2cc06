"""The one Transformer of the project (Vaswani et al. 2017), pre-norm or post-norm, with one gate per attention head.

Letters of shapes as in `heads.model.encoder`, whose encoder it has; and T target length, N hypotheses of a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heads.model.attention import KeyValues, Trace
from heads.model.encoder import Encoder, Gates, Layer, embedding_of, final_norm, layers_of, to_attention
from heads.model.linear import Linear
from heads.model.shape import ModelShape
from heads.model.tied import TiedLinear

ROOM = 8
"""For how many more steps a cache has room when it is copied, which also leaves out what nobody needs."""


@dataclass
class DecoderCache:
    """What incremental decoding keeps of B sentences with N hypotheses each, whose newest pieces go on together.

    Keys and values stay where a step wrote them: all hypotheses of a sentence attend to the same ones, and each sees
    those of its own past. So a hypothesis changes its place without them, and a past that several share stands there
    once.
    """

    own: list[KeyValues]
    """Each layer's own [B, H, R, E], of which the first K are written."""
    source: list[KeyValues]
    source_mask: Tensor
    seen: Tensor
    """[B, N, K] which of the keys are of each hypothesis' past."""
    steps: int = 0

    def reorder(self, parents: Tensor) -> None:
        """Put at each place [B, N] of a sentence a hypothesis that goes on from the one at place `parents`."""
        self.seen = self.seen.gather(1, parents[:, :, None].expand_as(self.seen))

    def keep(self, rows: Tensor) -> None:
        """Go on with these sentences only, in that order."""
        self.source = [kept.rows(rows) for kept in self.source]
        self.source_mask = self.source_mask[rows]
        self._tidy(rows)

    def _tidy(self, rows: Tensor) -> None:
        """Copy the own keys and values of these sentences, without a past that no hypothesis has any more."""
        seen = self.seen[rows]
        used = seen.any(1)
        # Sentences that need fewer keys than others keep some that nobody sees.
        places = used.byte().sort(dim=1, stable=True, descending=True).indices[:, : int(used.sum(1).max())]
        self.seen = seen.gather(2, places[:, None].expand(-1, seen.shape[1], -1))
        with_room = F.pad(places, (0, ROOM * seen.shape[1]))
        self.own = [kept.taken(rows, with_room) for kept in self.own]

    def advance(self) -> Tensor | None:
        """Begin a step; which of the keys [B, 1, N, K] each hypothesis may see then, None if all."""
        count, places, written = self.seen.shape
        if self.own and written + places > self.own[0].keys.shape[2]:
            self._tidy(torch.arange(count, device=self.seen.device))
        themselves = torch.eye(places, dtype=torch.bool, device=self.seen.device).expand(count, -1, -1)
        self.seen = torch.cat([self.seen, themselves], 2)
        self.steps += 1
        return self.seen[:, None] if places > 1 else None

    def attended(self, layer: int, newest: KeyValues) -> KeyValues:
        """A layer's own keys and values of all steps, with the newest [B, H, N, E]."""
        written = self.seen.shape[2]
        self.own[layer].write(newest, written)
        return self.own[layer].first(written)


class Transformer(Encoder):
    """Encoder-decoder over piece ids."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__(shape)
        self.source_embedding = embedding_of(shape, shape.source_pieces)
        shared = shape.shared_embedding
        self.target_embedding = embedding_of(shape, self.source_embedding.pieces if shared else shape.target_pieces)
        self.encoder = nn.ModuleList(Layer(shape, i, decoder=False) for i in range(shape.layers("enc_self")))
        self.decoder = nn.ModuleList(Layer(shape, i, decoder=True) for i in range(shape.layers("dec_self")))
        self.encoder_norm, self.decoder_norm = final_norm(shape), final_norm(shape)
        self.projection = (
            TiedLinear(self.target_embedding.pieces)
            if shape.tied_projection
            else Linear(shape.width, shape.target_pieces)
        )
        self.initialise()

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        source_mask: Tensor,
        gates: Gates | None = None,
        trace: Trace | None = None,
    ) -> Tensor:
        """Target ids [B, T], all at once, to states [B, T, D]; a position sees itself and what is before it.

        Padding stands after the real tokens, so the causal mask alone hides it from them.
        """
        states = self.target_embedding(target)
        mask = to_attention(source_mask)
        for layer in layers_of(self.decoder):
            states = layer.attend("dec_self", states, None, gates, trace, causal=True)
            states = layer.attend("dec_enc", states, layer.cross_attention.project(memory), gates, trace, mask=mask)
            states = layer.transform(states, trace)
        if trace is not None:
            trace["decoder_norm.input"] = states
        normed: Tensor = self.decoder_norm(states)
        return normed

    def start_cache(self, memory: Tensor, source_mask: Tensor, hypotheses: int = 1) -> DecoderCache:
        """An empty cache for decoding from `memory` [B, S, D] token by token, with so many hypotheses a sentence."""
        source = [layer.cross_attention.project(memory) for layer in layers_of(self.decoder)]
        width, room = self.shape.head_width, ROOM * hypotheses
        rooms = [memory.new_empty(len(memory), len(live), room, width) for live in self.shape.live_heads["dec_self"]]
        seen = source_mask.new_empty(len(memory), hypotheses, 0)
        return DecoderCache([KeyValues(room, room.clone()) for room in rooms], source, source_mask, seen)

    def decode_next(self, tokens: Tensor, cache: DecoderCache, gates: Gates | None = None) -> Tensor:
        """Logits [B, N, V] for what follows the hypotheses' newest `tokens` [B, N], which the cache is given."""
        states = self.target_embedding(tokens.flatten()[:, None], cache.steps).view(*tokens.shape, -1)
        visible, mask = cache.advance(), to_attention(cache.source_mask)
        for index, layer in enumerate(layers_of(self.decoder)):
            attended = cache.attended(index, layer.self_key_values(states))
            states = layer.attend("dec_self", states, attended, gates, None, mask=visible)
            states = layer.attend("dec_enc", states, cache.source[index], gates, None, mask=mask)
            states = layer.transform(states, None)
        logits: Tensor = self.projection(self.decoder_norm(states))
        return logits

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        target: Tensor,
        gates: Gates | None = None,
        trace: Trace | None = None,
    ) -> Tensor:
        """Decoder states [B, T, D] for source ids [B, S] and decoder input ids [B, T]; `projection` makes logits."""
        memory = self.encode(source, source_mask, gates, trace)
        return self.decode(target, memory, source_mask, gates, trace)

"""The encoder of every model: its layers, with one gate per attention head, and what stands before and behind them.

Letters of shapes: B batch, S source length, Q/K query and key length, D width, H heads of a layer, E width of one head,
V vocabulary. Masks are boolean and True at a real token.

Two things are peculiar. Layers may differ in how many heads they have, down to none, because pruning removes heads
physically. And every per-head output is multiplied by a gate before the output projection: sampled gates prune
(Voita et al. 2019, sec. 6), zeros and ones mask, and the gradient at one measures importance (Michel et al. 2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heads.model.attention import Attention, KeyValues, Trace
from heads.model.dropout import drop
from heads.model.linear import Linear
from heads.model.shape import ModelShape
from heads.model.tied import TiedEmbedding, TiedLinear

Gates = Mapping[str, Sequence[Tensor]]
"""For each gated kind of attention, one tensor [H] a layer, in the order of the layer's live heads."""
CPU = torch.device("cpu")
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "silu": F.silu, "gelu": F.gelu}
Pieces = nn.Embedding | TiedEmbedding


class FeedForward(nn.Module):
    """Two linear maps with a ReLU between them, or what else the shape names."""

    def __init__(self, width: int, inner: int, dropout: float, activation: str = "relu") -> None:
        super().__init__()
        self.inner, self.outer, self.dropout = Linear(width, inner), Linear(inner, width), dropout
        self.activation = activation

    def activate(self, sums: Tensor) -> Tensor:
        """The activation of what the first map gives, of any shape."""
        return ACTIVATIONS[self.activation](sums)

    def forward(self, states: Tensor) -> Tensor:
        """[B, Q, D] to [B, Q, D]."""
        hidden = drop(self.activate(self.inner(states)), self.dropout, training=self.training)
        changed: Tensor = self.outer(hidden)
        return changed


class Residual(nn.Module):
    """Layer norm and residual sum around a sub-layer, in either order."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape.width, eps=shape.norm_epsilon)
        self.dropout, self.pre_norm = shape.dropout, shape.pre_norm

    def enter(self, states: Tensor) -> Tensor:
        """What the sub-layer is given."""
        return self.norm(states) if self.pre_norm else states

    def leave(self, states: Tensor, change: Tensor) -> Tensor:
        """The sum of the stream and the sub-layer's output."""
        summed = states + drop(change, self.dropout, training=self.training)
        return summed if self.pre_norm else self.norm(summed)


class Layer(nn.Module):
    """A layer of the encoder, or of the decoder when it also attends to the encoder."""

    def __init__(self, shape: ModelShape, index: int, *, decoder: bool) -> None:
        super().__init__()
        self.index = index
        self.self_kind = "dec_self" if decoder else "enc_self"

        def attention(kind: str) -> Attention:
            heads = len(shape.live_heads[kind][index])
            return Attention(
                shape.width, heads, shape.head_width, shape.attention_dropout, biases=shape.attention_biases
            )

        self.self_attention, self.self_residual = attention(self.self_kind), Residual(shape)
        if decoder:
            self.cross_attention, self.cross_residual = attention("dec_enc"), Residual(shape)
        self.feedforward = FeedForward(shape.width, shape.feedforward, shape.dropout, shape.activation)
        self.feedforward_residual = Residual(shape)

    def attend(
        self,
        kind: str,
        states: Tensor,
        attended: KeyValues | None,
        gates: Gates | None,
        trace: Trace | None,
        **masks: Any,
    ) -> Tensor:
        """One attention sub-layer with its residual; without heads nothing is added but a bias, if it has one.

        attended: None lets every position attend to all of its own sentence, as far as the masks allow.
        """
        cross = kind == "dec_enc"
        attention, residual = (
            (self.cross_attention, self.cross_residual) if cross else (self.self_attention, self.self_residual)
        )
        name = f"{kind}.{self.index}"
        if trace is not None:
            trace[f"{name}.input"] = states
        if attention.heads == 0:
            return residual.leave(states, attention.without_heads(states))
        gate = gates[kind][self.index] if gates and kind in gates else None
        change = attention(residual.enter(states), attended, gate=gate, trace=trace, name=name, **masks)
        return residual.leave(states, change)

    def transform(self, states: Tensor, trace: Trace | None) -> Tensor:
        """The feed-forward sub-layer with its residual."""
        if trace is not None:
            trace[f"{self.self_kind[:3]}_ffn.{self.index}.input"] = states
        residual = self.feedforward_residual
        return residual.leave(states, self.feedforward(residual.enter(states)))

    def self_key_values(self, states: Tensor) -> KeyValues:
        """Keys and values of the layer's own input, as its self-attention sees it."""
        return self.self_attention.project(self.self_residual.enter(states))


def layers_of(stack: nn.ModuleList) -> list[Layer]:
    """The layers of an encoder or decoder, with their type."""
    return [layer for layer in stack if isinstance(layer, Layer)]


class Embedding(nn.Module):
    """Piece embeddings scaled by sqrt(D) plus sinusoidal positions (Vaswani et al. 2017, sec. 3.5)."""

    def __init__(
        self, pieces: int | Pieces, width: int, dropout: float, *, scaled: bool = True, halves: bool = False
    ) -> None:
        """pieces: how many there are, or those of another embedding whose matrix this one has too."""
        super().__init__()
        self.pieces = nn.Embedding(pieces, width) if isinstance(pieces, int) else TiedEmbedding(pieces)
        self.width, self.dropout = width, dropout
        self.factor, self.halves = math.sqrt(width) if scaled else 1.0, halves
        if isinstance(pieces, int):
            nn.init.normal_(self.pieces.weight, std=width**-0.5)

    def forward(self, ids: Tensor, first_position: int = 0) -> Tensor:
        """Ids [B, Q] to states [B, Q, D]; `first_position` is where the first of them stands in its sentence."""
        states = self.pieces(ids) * self.factor
        where = (first_position, states.dtype, states.device)
        states = states + sinusoids(ids.shape[1], self.width, *where, halves=self.halves)
        return drop(states, self.dropout, training=self.training)


@lru_cache(maxsize=1024)
def sinusoids(
    length: int,
    width: int,
    first: int = 0,
    dtype: torch.dtype = torch.float64,
    device: torch.device = CPU,
    *,
    halves: bool = False,
) -> Tensor:
    """Position signals [length, width], made on their device: sines in the even columns, cosines in the odd ones.

    halves: sines in the first half and cosines in the second.
    """
    positions = torch.arange(first, first + length, dtype=torch.float64, device=device)[:, None]
    evens = torch.arange(0, width, 2, dtype=torch.float64, device=device)
    angles = positions * torch.exp(evens * (-math.log(10_000.0) / width))
    waves = (angles.sin(), angles.cos())
    signals = torch.cat(waves, -1) if halves else torch.stack(waves, -1).flatten(1)
    return signals[:, :width].to(dtype)


def to_attention(source_mask: Tensor) -> Tensor | None:
    """The mask of a source [B, S] as attention takes it, [B, 1, 1, S]; None on a CPU if nothing is padded.

    Without a mask attention takes three quarters of the time. A GPU is not asked, as it would be waited for.
    """
    if source_mask.device.type == "cpu" and bool(source_mask.all()):
        return None
    return source_mask[:, None, None, :]


def embedding_of(shape: ModelShape, pieces: int | Pieces) -> Embedding:
    """An embedding with sinusoidal positions, as a shape says."""
    halves = shape.positions == "halves"
    return Embedding(pieces, shape.width, shape.dropout, scaled=shape.scaled_embedding, halves=halves)


def final_norm(shape: ModelShape) -> nn.Module:
    """What stands behind the last layer: a norm where the layers begin with theirs."""
    return nn.LayerNorm(shape.width) if shape.pre_norm else nn.Identity()


class Encoder(nn.Module):
    """What reads ids, and what every model has of it.

    `forward` of each takes source ids [B, S] with their mask and decoder input ids [B, T], gates and a trace, and gives
    states [B, T, D], one for each answer, of which `projection` makes logits.
    """

    source_embedding: Embedding
    encoder: nn.ModuleList
    encoder_norm: nn.Module
    projection: Linear | TiedLinear

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape

    def encode(
        self, source: Tensor, source_mask: Tensor, gates: Gates | None = None, trace: Trace | None = None
    ) -> Tensor:
        """Source ids [B, S] with mask [B, S] to states [B, S, D]."""
        states = self.source_embedding(source)
        mask = to_attention(source_mask)
        for layer in layers_of(self.encoder):
            states = layer.attend("enc_self", states, None, gates, trace, mask=mask)
            states = layer.transform(states, trace)
        if trace is not None:
            trace["encoder_norm.input"] = states
        normed: Tensor = self.encoder_norm(states)
        return normed

    def initialise(self) -> None:
        """Draw the matrices of all linear maps (Glorot and Bengio 2010); their biases are zero."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                if module.weight.numel():
                    nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

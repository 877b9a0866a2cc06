"""The encoder of every model: its layers, with one gate per attention head, and what stands before and behind them.

Letters of shapes: B batch, S source length, Q/K query and key length, D width, H heads of a layer, E width of one head,
V vocabulary. Masks are boolean and True at a real token.

Two things are peculiar. Layers may differ in how many heads they have, down to none, because pruning removes heads
physically. And every per-head output is multiplied by a gate before the output projection: sampled gates prune
(Voita et al. 2019, sec. 6), zeros and ones mask, and the gradient at one measures importance (Michel et al. 2019).
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor, nn

from heads.base.files import UserError
from heads.model.attention import Trace
from heads.model.dropout import drop
from heads.model.linear import Linear
from heads.model.shape import LEARNED, ModelShape
from heads.model.sublayers import Gates, Pass, parts_of, run_through
from heads.model.tied import TiedEmbedding, TiedLinear
from heads.text.special_ids import BOS

CPU = torch.device("cpu")
Subwords = nn.Embedding | TiedEmbedding


class Embedding(nn.Module):
    """Subword embeddings scaled by sqrt(D) plus positions, sinusoidal (Vaswani et al. 2017, sec. 3.5) or learnt."""

    def __init__(self, shape: ModelShape, subwords: int | Subwords, start: int = 0) -> None:
        """subwords: how many there are, or those of another embedding whose matrix this one has too.

        start: the id whose vector a decoder's start has, if it has none of its own.
        """
        super().__init__()
        self.width, self.dropout, self.start = shape.width, shape.dropout, start
        self.factor = math.sqrt(shape.width) if shape.scaled_embedding else 1.0
        self.first_position, self.layout = shape.first_position, shape.positions
        self.subwords = self.table(subwords) if isinstance(subwords, int) else TiedEmbedding(subwords)
        self.positions = self.table(shape.max_positions) if shape.positions == LEARNED else None
        self.norm = nn.LayerNorm(shape.width, eps=shape.norm_epsilon) if shape.embedding_norm else nn.Identity()

    def table(self, rows: int) -> nn.Embedding:
        """Vectors that are about as long as 1 at first."""
        made = nn.Embedding(rows, self.width)
        nn.init.normal_(made.weight, std=self.width**-0.5)
        return made

    def vectors(self, ids: Tensor) -> Tensor:
        """Of ids [B, Q], without positions [B, Q, D]."""
        found: Tensor = self.subwords(torch.where(ids == BOS, self.start, ids) if self.start else ids)
        return found

    def signals(self, length: int, first: int = 0) -> Tensor:
        """Of positions [length, D], of which `first` is where they begin in a sentence.

        Raises UserError where no so many are learnt.
        """
        weight = self.subwords.weight
        if self.positions is not None:
            if first + length > self.positions.num_embeddings:
                raise UserError(
                    f"a text has {first + length} subwords, and this model has learnt {self.positions.num_embeddings} "
                    "positions: leave it out, as training.max_subwords does."
                )
            signals: Tensor = self.positions(torch.arange(first, first + length, device=weight.device))
            return signals
        where = (self.first_position + first, weight.dtype, weight.device)
        return sinusoids(length, self.width, *where, layout=self.layout)

    def at(self, ids: Tensor, signals: Tensor) -> Tensor:
        """States [B, Q, D] of ids [B, Q] at positions with these signals [Q, D]."""
        states: Tensor = self.norm(self.vectors(ids) * self.factor + signals)
        return states

    def forward(self, ids: Tensor, first_position: int = 0) -> Tensor:
        """Ids [B, Q] to states [B, Q, D]; `first_position` is where the first of them stands in its sentence."""
        states = self.at(ids, self.signals(ids.shape[1], first_position))
        return drop(states, self.dropout, training=self.training)


@lru_cache(maxsize=1024)
def sinusoids(
    length: int,
    width: int,
    first: int = 0,
    dtype: torch.dtype = torch.float64,
    device: torch.device = CPU,
    *,
    layout: str = "interleaved",
) -> Tensor:
    """Position signals [length, width], made on their device: sines and cosines of falling frequencies.

    layout: "interleaved", sines in the even columns and cosines in the odd ones (Vaswani et al. 2017, sec. 3.5);
    "halves", sines in the first half and cosines in the second; "tensor2tensor", the same with frequencies that fall to
    1 / 10,000 and not to one step above it, as Marian has it too.
    """
    positions = torch.arange(first, first + length, dtype=torch.float64, device=device)[:, None]
    evens = torch.arange(0, width, 2, dtype=torch.float64, device=device)
    least = max(1, width - 2) if layout == "tensor2tensor" else width
    angles = positions * torch.exp(evens * (-math.log(10_000.0) / least))
    waves = (angles.sin(), angles.cos())
    signals = torch.stack(waves, -1).flatten(1) if layout == "interleaved" else torch.cat(waves, -1)
    return signals[:, :width].to(dtype)


def to_attention(source_mask: Tensor) -> Tensor | None:
    """The mask of a source [B, S] as attention takes it, [B, 1, 1, S]; None on a CPU if nothing is padded.

    Without a mask attention takes three quarters of the time. A GPU is not asked, as it would be waited for.
    """
    if source_mask.device.type == "cpu" and bool(source_mask.all()):
        return None
    return source_mask[:, None, None, :]


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
        states = run_through(parts_of(self.encoder), states, Pass(gates, trace, to_attention(source_mask)))
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

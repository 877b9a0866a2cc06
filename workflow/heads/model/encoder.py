"""The encoder of every model: embeddings, layers with one gate per attention head, and a final norm.

Letters of shapes: B batch, S source length, Q/K query and key length, D width, H heads of a layer, E width of one head,
V vocabulary. Masks are boolean and True at real tokens.

Two things are unusual. Layers may have different numbers of heads, down to none, because pruning removes heads
physically. And each head's output is multiplied by a gate before the output projection: sampled gates prune
(Voita et al. 2019, sec. 6), zeros and ones mask, and the gradient at one measures importance (Michel et al. 2019).
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heads.base.files import UserError
from heads.model.attention import Trace
from heads.model.distances import shared_distances
from heads.model.dropout import drop
from heads.model.linear import Linear, linear
from heads.model.shape import DISTANCES, LEARNED, ModelShape
from heads.model.sublayers import Gates, Pass, norm_of, parts_of, run_through
from heads.text.packed import Spans
from heads.text.special_ids import BOS

CPU = torch.device("cpu")


class Tied(nn.Module):
    """Base class of modules with the matrix of an embedding, which alone owns it, so that it is saved once."""

    def __init__(self, embedding: Subwords) -> None:
        super().__init__()
        # Inside a tuple, torch does not register it as a submodule.
        self._owner = (embedding,)

    @property
    def weight(self) -> Tensor:
        """The embedding's matrix [V, D]."""
        return self._owner[0].weight


class TiedLinear(Tied):
    """A linear map with the matrix of an embedding and a bias of its own."""

    def __init__(self, embedding: Subwords) -> None:
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


Subwords = nn.Embedding | TiedEmbedding


class Embedding(nn.Module):
    """Subword embeddings scaled by sqrt(D) plus positions, sinusoidal (Vaswani et al. 2017, sec. 3.5) or learnt.

    Positions are zeros in a model with learnt biases of distances.
    """

    def __init__(self, shape: ModelShape, subwords: int | Subwords, start: int | None = None) -> None:
        """subwords: the number of subwords, or those of another embedding, whose matrix this one shares.
        start: the id whose vector is used for BOS in a decoder; None: BOS has its own.
        """
        super().__init__()
        self.width, self.dropout, self.start = shape.width, shape.dropout, start
        self.factor = math.sqrt(shape.width) if shape.scaled_embedding else 1.0
        self.first_position, self.layout = shape.first_position, shape.positions
        self.subwords = self.table(subwords) if isinstance(subwords, int) else TiedEmbedding(subwords)
        self.positions = self.table(shape.max_positions) if shape.positions == LEARNED else None
        self.norm = norm_of(shape) if shape.embedding_norm else nn.Identity()

    def table(self, rows: int) -> nn.Embedding:
        """An embedding of this many rows, whose vectors initially have a length of about 1."""
        made = nn.Embedding(rows, self.width)
        nn.init.normal_(made.weight, std=self.width**-0.5)
        return made

    def vectors(self, ids: Tensor) -> Tensor:
        """Vectors [B, Q, D] of ids [B, Q], without positions."""
        found: Tensor = self.subwords(ids if self.start is None else torch.where(ids == BOS, self.start, ids))
        return found

    def signals(self, length: int, first: int = 0) -> Tensor:
        """Signals [length, D] of positions from `first` on. Raises UserError if the model has not learnt that many."""
        weight = self.subwords.weight
        if self.layout == DISTANCES:
            return weight.new_zeros(length, self.width)
        if self.positions is not None:
            if first + length > self.positions.num_embeddings:
                raise UserError(
                    f"a text has {first + length} subwords, but this model has learnt {self.positions.num_embeddings} "
                    "positions: leave the text out, for example with a lower training.max_subwords."
                )
            signals: Tensor = self.positions(torch.arange(first, first + length, device=weight.device))
            return signals
        where = (self.first_position + first, weight.dtype, weight.device)
        return sinusoids(length, self.width, *where, layout=self.layout)

    def at(self, ids: Tensor, signals: Tensor) -> Tensor:
        """States [B, Q, D] of ids [B, Q] with these position signals [Q, D]."""
        summed = (self.vectors(ids) * self.factor + signals).to(self.subwords.weight.dtype)
        states: Tensor = self.norm(summed)
        return states

    def forward(self, ids: Tensor, first_position: int = 0, spans: Spans | None = None) -> Tensor:
        """Embed ids [B, Q] as states [B, Q, D]; `first_position` is the position of the first id in its sentence.

        spans: if given, ids are [N] and states [N, D].
        """
        if spans is None:
            signals = self.signals(ids.shape[1], first_position)
        else:
            signals = self.signals(spans.longest).index_select(0, spans.places)
        return drop(self.at(ids, signals), self.dropout, training=self.training)


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
    """Position signals [length, width], computed on `device`: sines and cosines of decreasing frequency.

    layout: "interleaved", sines in the even columns and cosines in the odd ones (Vaswani et al. 2017, sec. 3.5);
    "halves", sines in the first half and cosines in the second; "tensor2tensor", the same with frequencies that fall to
    1 / 10,000 instead of one step above it, as in Marian.
    """
    positions = torch.arange(first, first + length, dtype=torch.float64, device=device)[:, None]
    evens = torch.arange(0, width, 2, dtype=torch.float64, device=device)
    least = max(1, width - 2) if layout == "tensor2tensor" else width
    angles = positions * torch.exp(evens * (-math.log(10_000.0) / least))
    waves = (angles.sin(), angles.cos())
    signals = torch.stack(waves, -1).flatten(1) if layout == "interleaved" else torch.cat(waves, -1)
    return signals[:, :width].to(dtype)


def to_attention(source_mask: Tensor) -> Tensor | None:
    """The source mask [B, S] in the shape that attention expects, [B, 1, 1, S]; None on a CPU if nothing is padded.

    Attention takes three quarters of the time without a mask. On a GPU, checking for padding would mean waiting for it.
    """
    if source_mask.device.type == "cpu" and bool(source_mask.all()):
        return None
    return source_mask[:, None, None, :]


def pass_over(
    real: Tensor | Spans,
    gates: Gates | None = None,
    trace: Trace | None = None,
    memory: Tensor | None = None,
    spans: Spans | None = None,
) -> Pass:
    """A pass over source tokens or, with `memory`, over target tokens, which have `spans` if nothing is padded.

    real: mask [B, S] of the source, or its spans.
    """
    if not isinstance(real, Spans):
        return Pass(gates, trace, to_attention(real), memory)
    return Pass(gates, trace, memory=memory, spans=real if memory is None else spans, memory_spans=real)


def final_norm(shape: ModelShape) -> nn.Module:
    """The module after the last layer: a norm in a pre-norm model, else the identity."""
    return norm_of(shape) if shape.pre_norm else nn.Identity()


class Encoder(nn.Module):
    """Base class of all models: embeds and encodes source ids.

    Each model's `forward` takes source ids [B, S] with their mask, decoder input ids [B, T], gates and a trace. It
    returns states [B, T, D], one for each answer, from which `projection` computes logits.
    """

    source_embedding: Embedding
    encoder: nn.ModuleList
    encoder_norm: nn.Module
    projection: Linear | TiedLinear

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.encoder_distances = shared_distances(shape, "enc_self")

    def encode(
        self, source: Tensor, real: Tensor | Spans, gates: Gates | None = None, trace: Trace | None = None
    ) -> Tensor:
        """Encode source ids [B, S] with mask [B, S] as states [B, S, D], or ids [N] with spans as states [N, D]."""
        states = self.source_embedding(source, spans=real if isinstance(real, Spans) else None)
        states = run_through(parts_of(self.encoder), states, pass_over(real, gates, trace))
        if trace is not None:
            trace["encoder_norm.input"] = states
        normed: Tensor = self.encoder_norm(states)
        return normed

    def initialise(self) -> None:
        """Initialise the matrices of all linear maps at random (Glorot and Bengio 2010) and their biases to zero."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                if module.weight.numel():
                    nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

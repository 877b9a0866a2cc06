"""The sub-layers that make up a layer, each with its norm and residual sum, of one base class.

`forward` takes all positions at once. While decoding, `start` creates a sub-layer's cache for its sentences, and `step`
takes the newest token of every hypothesis and that cache. Code that walks through a model (search, gates, relevance,
export) walks through its sub-layers.

Letters of shapes as in `heads.model.encoder`, and N hypotheses of a sentence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from heads.model.attention import Attention, KeyValues, Trace
from heads.model.distances import DistanceBias, all_distances, distances_of
from heads.model.dropout import drop
from heads.model.feedforward import FeedForward
from heads.model.shape import ModelShape
from heads.model.ssru import Ssru
from heads.model.sublayer_cache import CrossAttentionCache, Recurrent, SelfAttentionCache, SublayerCache
from heads.text.packed import Spans

Gates = Mapping[str, Sequence[Tensor]]
"""For each gated kind of attention, one tensor [H] per layer, in the order of the layer's live heads.

Of a feed-forward stack, such as `enc_ffn`, one tensor per layer with a factor on each hidden unit.
"""


@dataclass(frozen=True, slots=True)
class Pass:
    """What all sub-layers are given in a pass over all positions of a batch."""

    gates: Gates | None = None
    trace: Trace | None = None
    mask: Tensor | None = None
    """Which source tokens are real, in the shape that `heads.model.attention` expects."""
    memory: Tensor | None = None
    """The encoder's states [B, S, D], for a decoder."""
    spans: Spans | None = None
    """Which states belong to which sentence, if there is no padding: states are [N, D], and nothing is traced."""
    memory_spans: Spans | None = None
    """The same of the encoder's states, for a decoder."""

    def gate(self, kind: str, index: int) -> Tensor | None:
        """The gates [H] of one attention, or of the units of one feed-forward network, if it has any."""
        return self.gates[kind][index] if self.gates and kind in self.gates else None


@dataclass(frozen=True, slots=True)
class Step(Pass):
    """What all sub-layers are given in one decoding step. mask: as in `Pass`; memory: not used."""

    visible: Tensor | None = None
    """[B, 1, N, K]: which decoder tokens are in the past of each hypothesis; None if all are."""
    end: int = 0
    """Number of decoder tokens including the newest; 0 if keys and values have no spare room and are appended to."""
    distances: Tensor | None = None
    """[B, 1, K]: the place of each decoder token less that of the newest; None if they are in order."""


def norm_of(shape: ModelShape) -> nn.Module:
    """A norm of states as the shape has it."""
    return (nn.RMSNorm if shape.rms_norm else nn.LayerNorm)(shape.width, eps=shape.norm_epsilon)


class Residual(nn.Module):
    """Layer norm and residual sum around a sub-layer, in either order."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.norm = norm_of(shape)
        self.dropout, self.pre_norm = shape.dropout, shape.pre_norm

    def enter(self, states: Tensor) -> Tensor:
        """The input of the sub-layer: the states, normalised if pre-norm."""
        entered: Tensor = self.norm(states) if self.pre_norm else states
        return entered

    def leave(self, states: Tensor, change: Tensor) -> Tensor:
        """The sum of the states and the sub-layer's output, normalised if post-norm."""
        summed = states + drop(change, self.dropout, training=self.training)
        left: Tensor = summed if self.pre_norm else self.norm(summed)
        return left


@dataclass(frozen=True, slots=True)
class SubLayer:
    """One part of a layer, which maps states [B, Q, D] to states [B, Q, D]."""

    kind: str
    """Its name in traces, tables and gates: a kind of attention, or a name of its own."""
    index: int
    """The number of its layer."""
    residual: Residual

    def forward(self, states: Tensor, seen: Pass) -> Tensor:
        """Process all positions at once."""
        raise NotImplementedError

    def start(self, memory: Tensor, hypotheses: int) -> SublayerCache:
        """The cache for sentences with encoder states [B, S, D] before their first token is decoded."""
        return SublayerCache()

    def step(self, states: Tensor, kept: SublayerCache, now: Step) -> Tensor:
        """Process the newest token of each hypothesis, states [B, N, D]."""
        return self.forward(states, now)


def name_of(part: SubLayer) -> str:
    """The name of a sub-layer inside its model."""
    return f"{part.kind}.{part.index}"


@dataclass(frozen=True, slots=True)
class SelfAttention(SubLayer):
    """Attention to the tokens of the same sentence; in a decoder, each attends only to itself and earlier ones."""

    attention: Attention
    causal: bool
    distances: DistanceBias | None = None
    """Biases of the layer or of its whole stack, of which the heads have these `columns`."""
    columns: Sequence[int] = ()

    def forward(self, states: Tensor, seen: Pass) -> Tensor:
        """See `SubLayer`. Padding comes after the real tokens, so the causal mask alone hides it from them."""
        length = states.shape[1] if seen.spans is None else seen.spans.longest
        bias = self.bias(all_distances(length, states.device)[None]) if self.distances else None
        return attended(self, states, None, seen, None if self.causal else seen.mask, causal=self.causal, bias=bias)

    def bias(self, distances: Tensor) -> Tensor:
        """The biases [B, H, Q, K] at distances [B, Q, K]."""
        assert self.distances is not None
        biases: Tensor = self.distances(distances, self.columns)
        return biases

    def start(self, memory: Tensor, hypotheses: int) -> SelfAttentionCache:
        """See `SubLayer`."""
        return SelfAttentionCache.empty(memory, self.attention.heads, self.attention.head_width, hypotheses)

    def step(self, states: Tensor, kept: SublayerCache, now: Step) -> Tensor:
        """See `SubLayer`."""
        if self.attention.heads == 0:
            return self.residual.leave(states, self.attention.without_heads(states))
        assert isinstance(kept, SelfAttentionCache)
        entered = self.residual.enter(states)
        past = kept.extended(self.attention.project(entered), now.end)
        bias, given = None, now.distances
        if self.distances:
            bias = self.bias(all_distances(past.keys.shape[2], states.device)[None, -1:] if given is None else given)
        change = self.attention(entered, past, gate=now.gate(self.kind, self.index), mask=now.visible, bias=bias)
        return self.residual.leave(states, change)


@dataclass(frozen=True, slots=True)
class CrossAttention(SubLayer):
    """Attention of the decoder to the encoder's states (the paper's decoder-encoder attention)."""

    attention: Attention

    def forward(self, states: Tensor, seen: Pass) -> Tensor:
        """See `SubLayer`."""
        assert seen.memory is not None
        memory = self.attention.project(seen.memory, seen.memory_spans) if self.attention.heads else None
        return attended(self, states, memory, seen, seen.mask)

    def start(self, memory: Tensor, hypotheses: int) -> CrossAttentionCache:
        """See `SubLayer`."""
        return CrossAttentionCache(self.attention.project(memory).contiguous())

    def step(self, states: Tensor, kept: SublayerCache, now: Step) -> Tensor:
        """See `SubLayer`."""
        assert isinstance(kept, CrossAttentionCache)
        return attended(self, states, kept.attended, now, now.mask)


def attended(
    part: SelfAttention | CrossAttention,
    states: Tensor,
    to: KeyValues | None,
    seen: Pass,
    mask: Tensor | None,
    *,
    causal: bool = False,
    bias: Tensor | None = None,
) -> Tensor:
    """States after attention to keys and values, or to themselves; without heads, only a bias, if any, is added."""
    attention, residual = part.attention, part.residual
    if attention.heads == 0:
        return residual.leave(states, attention.without_heads(states))
    gate = seen.gate(part.kind, part.index)
    change = attention(
        residual.enter(states), to, mask=mask, causal=causal, gate=gate, trace=seen.trace, name=name_of(part),
        spans=(seen.spans, seen.spans if to is None else seen.memory_spans), bias=bias,
    )  # fmt: skip
    return residual.leave(states, change)


@dataclass(frozen=True, slots=True)
class Recurrence(SubLayer):
    """A recurrent unit in place of the decoder's self-attention: it has a state of the past and no heads."""

    ssru: Ssru

    def forward(self, states: Tensor, seen: Pass) -> Tensor:
        """See `SubLayer`."""
        entered = self.residual.enter(states)
        if seen.spans is None:
            return self.residual.leave(states, self.ssru(entered))
        (padded,) = seen.spans.padded_heads(entered, 1, 1)
        return self.residual.leave(states, seen.spans.packed_heads(self.ssru(padded[:, 0])[:, None]))

    def start(self, memory: Tensor, hypotheses: int) -> Recurrent:
        """See `SubLayer`."""
        return Recurrent(memory.new_zeros(memory.shape[0], hypotheses, memory.shape[-1]))

    def step(self, states: Tensor, kept: SublayerCache, now: Step) -> Tensor:
        """See `SubLayer`."""
        assert isinstance(kept, Recurrent)
        change, kept.state = self.ssru.step(self.residual.enter(states), kept.state)
        return self.residual.leave(states, change)


@dataclass(frozen=True, slots=True)
class FeedForwardPart(SubLayer):
    """The feed-forward network of a layer."""

    feedforward: FeedForward

    def forward(self, states: Tensor, seen: Pass) -> Tensor:
        """See `SubLayer`."""
        change = self.feedforward(self.residual.enter(states), seen.gate(self.kind, self.index))
        return self.residual.leave(states, change)


class Layer(nn.Module):
    """A layer of the encoder or decoder: its modules, and the sub-layers made of them."""

    def __init__(self, shape: ModelShape, index: int, *, decoder: bool, distances: DistanceBias | None = None) -> None:
        """distances: biases that all layers of the stack share."""
        super().__init__()
        self.index = index

        def attention(kind: str) -> Attention:
            """An attention of this kind with the layer's live heads."""
            heads, biased = len(shape.live_heads[kind][index]), bool(shape.distance_buckets and kind != "dec_enc")
            how = {"biases": shape.attention_biases, "by_distance": biased, "scaled": shape.scaled_products}
            return Attention(shape.width, heads, shape.head_width, shape.attention_dropout, **how)

        stack = "dec" if decoder else "enc"
        self.parts: list[SubLayer] = []
        """In the order in which they are applied."""
        if decoder and shape.recurrent:
            self.recurrence, self.recurrence_residual = Ssru(shape.width), Residual(shape)
            self.parts.append(Recurrence(f"{stack}_ssru", index, self.recurrence_residual, self.recurrence))
        else:
            kind = f"{stack}_self"
            self.self_attention, self.self_residual = attention(kind), Residual(shape)
            live = shape.live_heads[kind][index]
            columns = [shape.sharing(kind).index(head) for head in live]
            if shape.distances_by_layer:
                self.distances = distances = distances_of(shape, len(live), causal=decoder)
                columns = [*range(len(live))]
            around = (self.self_residual, self.self_attention, decoder)
            self.parts.append(SelfAttention(kind, index, *around, distances, columns))
        if decoder:
            self.cross_attention, self.cross_residual = attention("dec_enc"), Residual(shape)
            self.parts.append(CrossAttention("dec_enc", index, self.cross_residual, self.cross_attention))
        kind = f"{stack}_ffn"
        self.feedforward = FeedForward(
            shape.width, shape.units(kind)[index], shape.dropout, shape.activation,
            gated=shape.gated_units, biases=shape.feedforward_biases,
        )  # fmt: skip
        self.feedforward_residual = Residual(shape)
        self.parts.append(FeedForwardPart(kind, index, self.feedforward_residual, self.feedforward))


def stack_of(shape: ModelShape, layers: int, distances: DistanceBias | None, *, decoder: bool = False) -> nn.ModuleList:
    """The layers of an encoder or decoder, with the biases of distances that they share, if they do."""
    return nn.ModuleList(Layer(shape, index, decoder=decoder, distances=distances) for index in range(layers))


def layers_of(stack: nn.ModuleList) -> list[Layer]:
    """The layers of an encoder or decoder, typed as `Layer`."""
    return [layer for layer in stack if isinstance(layer, Layer)]


def parts_of(stack: nn.ModuleList) -> list[SubLayer]:
    """The sub-layers of an encoder or decoder, from bottom to top."""
    return [part for layer in layers_of(stack) for part in layer.parts]


def run_through(parts: Sequence[SubLayer], states: Tensor, seen: Pass) -> Tensor:
    """Apply a stack of sub-layers to states [B, Q, D]; the input of each goes into the trace, if there is one."""
    for part in parts:
        if seen.trace is not None:
            seen.trace[f"{name_of(part)}.input"] = states
        states = part.forward(states, seen)
    return states

"""The shape of a model and the other facts in its folder, without the weights. No torch."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from heads.base.files import UserError, current_names, read_json
from heads.base.names import ATTENTIONS, CLASSIFICATION, FEEDFORWARDS, GATED_SCOPES, KINDS_OF, TRANSLATION
from heads.config.trainings import ModelSettings
from heads.text.special_ids import PAD

FACTS = "model.json"
Head = tuple[str, int, int]
"""Kind of attention, layer, and the head's number before any head was removed; or stack, layer and hidden unit."""
Place = tuple[str, int]
"""A sub-layer: its kind, such as enc_self or dec_ffn, and its layer."""
ACTIVATIONS = ("relu", "silu", "gelu", "gelu_tanh")
"""Activations that feed-forward layers may have; gelu is exact, gelu_tanh its approximation by a tanh."""
LEARNED, DISTANCES = "learned", "distances"
SSRU = "ssru"
PASTS = ("self_attention", SSRU)
"""How decoder layers read the target so far: by self-attention, or by a recurrent unit without heads."""
POSITIONS = ("interleaved", "halves", "tensor2tensor", LEARNED, DISTANCES)
"""The layouts of `heads.model.encoder.sinusoids`, learnt positions, and learnt biases of distances in their place."""
POOLINGS = ("mean", "cls", "max")
"""How a sentence encoder makes one vector of its last states: by their mean, the first, or the largest numbers."""
NO_SHAPE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""Errors raised for an invalid shape."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Everything needed to rebuild a model: sizes, and which of the original heads are live in each layer.

    Files name the fields below `attention_dropout` only where they differ from their defaults.
    """

    width: int
    head_width: int
    feedforward: int
    dropout: float
    pre_norm: bool
    source_subwords: int
    target_subwords: int
    original_heads: int
    live_heads: Mapping[str, tuple[tuple[int, ...], ...]]
    attention_dropout: float = 0.0
    attention_biases: bool = False
    """Whether all four projections have biases; then a layer without heads still adds its output bias."""
    activation: str = "relu"
    positions: str = "interleaved"
    scaled_embedding: bool = True
    """Whether embeddings are multiplied by sqrt(D) (Vaswani et al. 2017, sec. 3.4)."""
    norm_epsilon: float = 1e-5
    tied_projection: bool = False
    """Whether the output projection has the matrix of the target embedding."""
    shared_embedding: bool = False
    """Whether the source embedding is the target embedding."""
    labels: int = 0
    """Number of classes; 0: the model translates, or embeds sentences if it has no decoder."""
    token_types: int = 0
    """Number of vectors for the first and the second sentence of an example; 0: none."""
    max_positions: int = 0
    """Number of learnt positions; 0: positions are not learnt."""
    embedding_norm: bool = False
    decoder_past: str = "self_attention"
    first_position: int = 0
    """Position of the first subword, if positions are not learnt."""
    start_subword: int = 0
    """The id whose embedding is used for BOS in the decoder; 0: BOS has its own."""
    first_subword: int = 0
    """The id that every translation begins with, such as that of its language; 0: any."""
    fixed_bias: bool = False
    """Whether the projection's bias is frozen: it only rules out ids that are not subwords."""
    pooling: str = POOLINGS[0]
    """How a sentence encoder makes one vector of its last states."""
    nameless_subwords: int = 0
    """Number of the last target ids, which have no subword: probabilities count them, translations never have them."""
    live_units: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The number of hidden units left in the feed-forward network of each layer, by stack; empty: all `feedforward`."""
    rms_norm: bool = False
    """Whether norms only divide by the root mean square, without mean and bias (Zhang and Sennrich 2019)."""
    gated_units: bool = False
    """Whether hidden units are multiplied by a second linear map of the same states (Shazeer 2020)."""
    feedforward_biases: bool = True
    distance_buckets: int = 0
    """Number of buckets of distances that each head of self-attention has a learnt bias for."""
    farthest_distance: int = 128
    """Distances from this one on share a bucket."""
    distances_by_layer: bool = False
    """Whether each layer has biases of its own, and not those of its whole stack."""
    scaled_products: bool = True
    """Whether products of queries and keys are divided by the square root of a head's width."""
    starts_with_padding: bool = False
    """Whether the embedding of padding is used for BOS in the decoder."""

    def __post_init__(self) -> None:
        """Raise ValueError for unknown names and for contradictory settings."""
        if self.activation not in ACTIVATIONS or self.positions not in POSITIONS:
            raise ValueError(f"unknown activation {self.activation} or positions {self.positions}")
        if (self.positions == LEARNED) != (self.max_positions > 0):
            raise ValueError("learnt positions need max_positions, and other positions must not have it")
        sides = self.distance_buckets // 4
        if (self.positions == DISTANCES) != (sides > 0) or 2 * sides >= self.farthest_distance:
            raise ValueError("distances need at least 4 buckets, the last of which are farther than each is wide")
        if not all(0 <= subword < max(1, self.target_subwords) for subword in (self.start_subword, self.first_subword)):
            raise ValueError("start_subword and first_subword must be ids of the target vocabulary")
        if self.labels and (self.labels != self.target_subwords or self.layers("dec_self") or self.layers("dec_enc")):
            raise ValueError("a classifier must have its labels as target subwords, and no decoder")
        if self.decoder_past not in PASTS or self.layers("dec_self") != self.decoder_layers * (not self.recurrent):
            raise ValueError("decoder layers must all have self-attention, or all have a recurrent unit")
        if self.shared_embedding and self.source_subwords != self.target_subwords:
            raise ValueError("a shared embedding needs source and target vocabularies of the same size")
        if self.pooling not in POOLINGS[: len(POOLINGS) if self.embeds else 1]:
            raise ValueError(f"unknown pooling {self.pooling}, or pooling in a model that embeds no sentences")
        layers = dict(zip(FEEDFORWARDS, (self.encoder_layers, self.decoder_layers), strict=True))
        if self.live_units and {stack: len(units) for stack, units in self.live_units.items()} != layers:
            raise ValueError("live_units must name the units of every layer of both stacks")
        if not 0 <= self.nameless_subwords < max(1, self.target_subwords):
            raise ValueError("some ids of the target vocabulary must have a subword")

    @property
    def encoder_only(self) -> bool:
        """Whether the model is an encoder without a decoder: a classifier or a sentence encoder."""
        return not self.decoder_layers

    @property
    def classifies(self) -> bool:
        """Whether the model is a classifier."""
        return self.labels > 0

    @property
    def embeds(self) -> bool:
        """Whether the model maps a sentence to one vector."""
        return self.encoder_only and not self.classifies

    @property
    def named_subwords(self) -> tuple[int, int]:
        """Numbers of source and target ids up to those without a subword; an embedding that both share has the same."""
        target = self.target_subwords - self.nameless_subwords
        return (target if self.shared_embedding else self.source_subwords), target

    @property
    def start(self) -> int | None:
        """The id whose embedding is used for BOS in the decoder; None: BOS has its own."""
        return PAD if self.starts_with_padding else self.start_subword or None

    @property
    def longest(self) -> int:
        """Maximum number of subwords of a text, including EOS: the number of learnt positions, if there are any."""
        return self.max_positions or sys.maxsize

    @property
    def recurrent(self) -> bool:
        """Whether the decoder has recurrent units instead of self-attention."""
        return self.decoder_past == SSRU

    @property
    def encoder_layers(self) -> int:
        """Number of encoder layers."""
        return self.layers("enc_self")

    @property
    def decoder_layers(self) -> int:
        """Number of decoder layers, all of which have cross-attention; 0 without a decoder."""
        return self.layers("dec_enc")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of attention that the model has, in the order of all tables and figures."""
        return tuple(kind for kind in ATTENTIONS if self.layers(kind))

    def kinds_in(self, scope: str) -> tuple[str, ...]:
        """The kinds of attention, and the feed-forward stacks, of a pruning scope that the model has."""
        return tuple(kind for kind in GATED_SCOPES[scope] if self.members(kind))

    def layers(self, kind: str) -> int:
        """Number of layers that have this kind of attention, with heads or without."""
        return len(self.live_heads[kind])

    def units(self, stack: str) -> tuple[int, ...]:
        """Number of hidden units in the feed-forward network of each layer of a stack, such as `enc_ffn`."""
        layers = self.encoder_layers if stack == FEEDFORWARDS[0] else self.decoder_layers
        return self.live_units[stack] if self.live_units else (self.feedforward,) * layers

    def members(self, kind: str) -> tuple[Sequence[int], ...]:
        """What can be pruned in each layer: the live heads of a kind of attention, or the units of a stack."""
        return tuple(map(range, self.units(kind))) if kind in FEEDFORWARDS else self.live_heads[kind]

    def sharing(self, kind: str) -> tuple[int, ...]:
        """The heads that any layer of self-attention still has: those that biases shared by its stack are of."""
        return tuple(sorted({head for layer in self.live_heads[kind] for head in layer}))

    def all_heads(self) -> tuple[Head, ...]:
        """All heads of the original model, in the order of all tables and figures."""
        return tuple(
            (kind, layer, head)
            for kind in ATTENTIONS
            for layer in range(self.layers(kind))
            for head in range(self.original_heads)
        )

    def heads(self, kinds: Collection[str] = ATTENTIONS) -> tuple[Head, ...]:
        """All live heads of the given kinds of attention, in the order of all tables and figures."""
        return self.heads_and_units([kind for kind in kinds if kind in ATTENTIONS])

    def heads_and_units(self, kinds: Collection[str]) -> tuple[Head, ...]:
        """All live heads of these kinds of attention, then all hidden units of these feed-forward stacks."""
        return tuple(
            (kind, layer, member)
            for kind in (*ATTENTIONS, *FEEDFORWARDS)
            if kind in kinds
            for layer, members in enumerate(self.members(kind))
            for member in members
        )

    def as_dict(self) -> dict[str, Any]:
        """The shape as a dictionary for JSON, without fields after `attention_dropout` that have their defaults."""
        plain = {each.name: {} if each.default is MISSING else each.default for each in fields(self)[IMPORTED:]}
        return {key: value for key, value in asdict(self).items() if key not in plain or value != plain[key]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ModelShape:
        """The shape written by `as_dict`."""
        live = {kind: tuple(tuple(layer) for layer in content["live_heads"][kind]) for kind in ATTENTIONS}
        # Models older than this setting had the same dropout for attention weights as for everything else.
        units = {stack: tuple(layers) for stack, layers in content.get("live_units", {}).items()}
        facts = {"attention_dropout": content["dropout"], **current_names(content)}
        return cls(**{**facts, "live_heads": live, "live_units": units})


IMPORTED = [each.name for each in fields(ModelShape)].index("attention_biases")
"""Index of the first field that files name only where it differs from its default."""


def unpruned_shape(model: ModelSettings, source_subwords: int, target_subwords: int, labels: int = 0) -> ModelShape:
    """The shape of an unpruned model. labels: the number of classes of a classifier, which are its target subwords."""
    return ModelShape(
        width=model.width,
        head_width=model.width // model.heads,
        feedforward=model.feedforward,
        dropout=model.dropout,
        attention_dropout=model.attention_dropout,
        pre_norm=model.pre_norm,
        source_subwords=source_subwords,
        target_subwords=target_subwords,
        original_heads=model.heads,
        live_heads=full_heads(
            layers=model.layers, heads=model.heads, kinds=KINDS_OF[CLASSIFICATION if labels else TRANSLATION]
        ),
        labels=labels,
        token_types=2 if labels else 0,
    )


def full_heads(
    *, layers: int, heads: int, kinds: Collection[str] = ATTENTIONS
) -> dict[str, tuple[tuple[int, ...], ...]]:
    """The live heads of an unpruned model with these kinds of attention."""
    return {kind: (tuple(range(heads)),) * (layers if kind in kinds else 0) for kind in ATTENTIONS}


def facts_of(folder: Path) -> dict[str, Any]:
    """Shape, updates, dev loss and provenance, from the file beside a model's weights.

    Raises UserError if it is missing or damaged.
    """
    facts: dict[str, Any] = read_json(folder / FACTS)
    return facts


def check_answers(shape: ModelShape, folder: Path) -> None:
    """Raise UserError if the model in a folder embeds sentences, so that none of its answers is right or wrong."""
    if shape.embeds:
        raise UserError(
            f"{folder} holds a model that embeds sentences, and this needs one that translates or classifies: give "
            "another run."
        )


def shape_of(folder: Path) -> ModelShape:
    """The shape of the model in a folder. Raises UserError if its file is missing or damaged."""
    try:
        return ModelShape.from_dict(facts_of(folder)["shape"])
    except NO_SHAPE as error:
        raise UserError(f"{folder / FACTS} does not hold a model: delete it and run its stage again.") from error

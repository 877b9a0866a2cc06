"""The shape of a model and what else its folder says about it, without its weights. No torch."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from heads.base.files import UserError, current_names, read_json
from heads.base.names import ATTENTIONS, CLASSIFICATION, KINDS_OF, SCOPES, TRANSLATION
from heads.config.trainings import ModelSettings

FACTS = "model.json"
Head = tuple[str, int, int]
"""Attention, layer and the number that a head had before any was removed."""
ACTIVATIONS = ("relu", "silu", "gelu")
"""What feed-forward layers may have between their two maps; gelu by the normal distribution itself."""
LEARNED = "learned"
SSRU = "ssru"
PASTS = ("self_attention", SSRU)
"""How a decoder's layers mix what was written so far: by attention to it, or by a recurrent unit without heads."""
POSITIONS = ("interleaved", "halves", "tensor2tensor", LEARNED)
"""The layouts of `heads.model.encoder.sinusoids`, and a table."""
NO_SHAPE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""Errors raised for an invalid shape."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """All that is needed to rebuild a model: sizes, and which of the original heads are live in every layer.

    What stands below `attention_dropout` only imported models have otherwise; files name it where they have.
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
    """Of all four projections; then a layer without heads still adds its output's bias."""
    activation: str = "relu"
    positions: str = "interleaved"
    scaled_embedding: bool = True
    """By sqrt(D) (Vaswani et al. 2017, sec. 3.4)."""
    norm_epsilon: float = 1e-5
    tied_projection: bool = False
    """The matrix of the projection is that of the target's embedding."""
    shared_embedding: bool = False
    """The source's embedding is the target's."""
    labels: int = 0
    """How many classes there are; 0: the model translates, or embeds sentences if it has no decoder."""
    token_types: int = 0
    """Vectors for the first and the second sentence of an example, if there are any."""
    max_positions: int = 0
    """How many are learnt."""
    embedding_norm: bool = False
    decoder_past: str = "self_attention"
    first_position: int = 0
    """Of the first subword, where positions are not learnt."""
    start_subword: int = 0
    """The id whose embedding the decoder's start has; 0: one of its own."""
    first_subword: int = 0
    """The id that every translation begins with, such as its language's; 0: any."""
    fixed_bias: bool = False
    """The projection's bias does not learn: it only keeps ids away that are no subwords."""

    def __post_init__(self) -> None:
        """Raises ValueError for words that are not known here, and for what cannot be one."""
        if self.activation not in ACTIVATIONS or self.positions not in POSITIONS:
            raise ValueError(f"{self.activation} and {self.positions} are not both known")
        if (self.positions == LEARNED) != (self.max_positions > 0):
            raise ValueError("positions are learnt where it is told how many")
        if not all(0 <= subword < max(1, self.target_subwords) for subword in (self.start_subword, self.first_subword)):
            raise ValueError("what a translation begins with is a subword of its vocabulary")
        if self.labels and (self.labels != self.target_subwords or self.layers("dec_self") or self.layers("dec_enc")):
            raise ValueError("a model that classifies has labels alone behind its encoder")
        if self.decoder_past not in PASTS or self.layers("dec_self") != self.decoder_layers * (not self.recurrent):
            raise ValueError("a decoder's layers all have self-attention, or all have a recurrent unit")
        if self.shared_embedding and self.source_subwords != self.target_subwords:
            raise ValueError("a shared embedding is of one vocabulary")

    @property
    def alone(self) -> bool:
        """Whether it is of an encoder without a decoder, which reads examples: one that classifies or embeds."""
        return not self.decoder_layers

    @property
    def classifies(self) -> bool:
        """Whether it is of a model that classifies, and does not translate."""
        return self.labels > 0

    @property
    def embeds(self) -> bool:
        """Whether it is of a model that makes one vector of a sentence."""
        return self.alone and not self.classifies

    @property
    def longest(self) -> int:
        """How many subwords a text may have, its end counted: as many as positions are learnt."""
        return self.max_positions or sys.maxsize

    @property
    def recurrent(self) -> bool:
        """Whether the decoder has a recurrent unit where others have self-attention."""
        return self.decoder_past == SSRU

    @property
    def encoder_layers(self) -> int:
        """The depth of the encoder."""
        return self.layers("enc_self")

    @property
    def decoder_layers(self) -> int:
        """The depth of the decoder, all of whose layers attend to the encoder; 0 where there is none."""
        return self.layers("dec_enc")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of attention that the model has, in the order of every table and figure."""
        return tuple(kind for kind in ATTENTIONS if self.layers(kind))

    def kinds_in(self, scope: str) -> tuple[str, ...]:
        """The kinds of attention of a pruning scope, as far as the model has them."""
        return tuple(kind for kind in SCOPES[scope] if self.layers(kind))

    def layers(self, kind: str) -> int:
        """Number of layers that have this kind of attention, with heads or without."""
        return len(self.live_heads[kind])

    def all_heads(self) -> tuple[Head, ...]:
        """Every head of the original model, in the order of every table and figure."""
        return tuple(
            (kind, layer, head)
            for kind in ATTENTIONS
            for layer in range(self.layers(kind))
            for head in range(self.original_heads)
        )

    def heads(self, kinds: Collection[str] = ATTENTIONS) -> tuple[Head, ...]:
        """Every live head of some kinds of attention, in the order of every table and figure."""
        return tuple(
            (kind, layer, head)
            for kind in ATTENTIONS
            if kind in kinds
            for layer, live in enumerate(self.live_heads[kind])
            for head in live
        )

    def as_dict(self) -> dict[str, Any]:
        """A plain dictionary for JSON, without what only imported models have otherwise."""
        plain = {field.name: field.default for field in fields(self)[IMPORTED:]}
        return {key: value for key, value in asdict(self).items() if key not in plain or value != plain[key]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ModelShape:
        """The shape written by `as_dict`."""
        live = {kind: tuple(tuple(layer) for layer in content["live_heads"][kind]) for kind in ATTENTIONS}
        # Models from before it was a setting dropped attention weights like all else.
        return cls(**{"attention_dropout": content["dropout"], **current_names(content), "live_heads": live})


IMPORTED = [field.name for field in fields(ModelShape)].index("attention_biases")
"""The first field that files name only where it differs from models trained here."""


def unpruned_shape(model: ModelSettings, source_subwords: int, target_subwords: int, labels: int = 0) -> ModelShape:
    """The shape of a model of these settings and vocabularies from which nothing was removed.

    labels: how many classes a classifier has; these are its target's subwords.
    """
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
        live_heads=full_heads(layers=model.layers, heads=model.heads, kinds=kinds_of(labels)),
        labels=labels,
        token_types=2 if labels else 0,
    )


def kinds_of(labels: int) -> tuple[str, ...]:
    """The kinds of attention of a model that translates, or classifies into so many labels."""
    return KINDS_OF[CLASSIFICATION if labels else TRANSLATION]


def full_heads(
    *, layers: int, heads: int, kinds: Collection[str] = ATTENTIONS
) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Live heads of a model with these kinds of attention from which nothing was removed."""
    return {kind: (tuple(range(heads)),) * (layers if kind in kinds else 0) for kind in ATTENTIONS}


def facts_of(folder: Path) -> dict[str, Any]:
    """What a training left in the folder of its model beside the weights: shape, updates, dev loss, provenance.

    Raises UserError when the file is missing or damaged.
    """
    facts: dict[str, Any] = read_json(folder / FACTS)
    return facts


def shape_of(folder: Path) -> ModelShape:
    """The shape of the model of a folder.

    Raises UserError when its file is missing or damaged.
    """
    try:
        return ModelShape.from_dict(facts_of(folder)["shape"])
    except NO_SHAPE as error:
        raise UserError(f"{folder / FACTS} does not hold a model: delete it and run its stage again.") from error

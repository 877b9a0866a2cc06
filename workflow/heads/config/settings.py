"""Settings: an experiment is the defaults plus its own changes, checked against a closed schema, then split by stage.

Nothing here has a default value: config.yaml is the one home of them. Imported by the Snakefile, so kept light.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from heads.base.files import UserError, read_yaml
from heads.config.schema import SCHEMAS, check, check_together, nearest

STAGE_SECTIONS: dict[str, tuple[str, ...]] = {
    "bpe": ("bpe",),
    "baseline": ("model", "training", "baseline"),
    "gates": ("training", "gates"),
    "penalty_gates": ("training", "gates", "scratch"),
    "selected": ("training", "selected"),
    "selection": ("selection",),
    "masked": ("translate", "selection"),
    "compared": ("selection",),
    "scratch": ("training", "scratch"),
    "score": ("translate",),
    "confidence": ("confidence",),
    "lrp": ("lrp",),
    "roles": ("roles",),
    "maps": ("maps",),
    "parser": ("parser",),
    "speed": ("speed",),
    "importance": ("importance", "training"),
    "ablation": ("ablation",),
    "masking_curve": ("masking_curve",),
    "checkpoints": ("checkpoints", "importance", "training"),
}
"""Which sections of an experiment each stage is given; a change elsewhere can not rerun it."""


@dataclass(frozen=True, slots=True)
class BpeSettings:
    """How the two vocabularies are learnt."""

    source_pieces: int
    target_pieces: int
    character_coverage: float
    train_sentences: int
    seed: int


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Sizes of the unpruned Transformer."""

    layers: int
    heads: int
    width: int
    feedforward: int
    dropout: float
    pre_norm: bool


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """What every training has in common: batches, loss, optimiser, schedule, evaluation."""

    batch_tokens: int
    micro_batch_tokens: int
    max_pieces: int
    label_smoothing: float
    adam_beta1: float
    adam_beta2: float
    adam_epsilon: float
    learning_rate_scale: float
    warmup_updates: int
    decay_share: float
    precision: str
    evaluate_every: int
    dev_bleu_sentences: int


@dataclass(frozen=True, slots=True)
class LengthSettings:
    """How long a model is trained, when it stops early and which last states are averaged."""

    updates: int
    patience: int
    average_last: int
    average_every: int


@dataclass(frozen=True, slots=True)
class BaselineSettings(LengthSettings):
    """The unpruned model, and the updates after which its weights are kept as checkpoints."""

    keep_at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HardConcrete:
    """The distribution of a gate; `low` < 0 and `high` > 1 are the ends of the stretched interval."""

    temperature: float
    low: float
    high: float
    log_alpha_init: float


@dataclass(frozen=True, slots=True)
class SubsetSettings:
    """Gates of an exact number: how they learn and cool down, and whether they are zeros and ones while training."""

    learning_rate: float
    temperature_first: float
    temperature_last: float
    cooldown_share: float
    straight_through: bool


@dataclass(frozen=True, slots=True)
class GatesSettings:
    """The fine-tuning with gates."""

    updates: int
    average_last: int
    average_every: int
    gate_learning_rate: float
    record_every: int
    hard_concrete: HardConcrete
    subset: SubsetSettings


@dataclass(frozen=True, slots=True)
class TranslateSettings:
    """Beam search on the test set."""

    beam: int
    length_penalty: float
    batch_tokens: int
    sentences: int


@dataclass(frozen=True, slots=True)
class ConfidenceSettings:
    """How many dev sentences confidence is averaged over."""

    sentences: int
    batch_tokens: int


@dataclass(frozen=True, slots=True)
class LrpSettings:
    """Layer-wise relevance propagation."""

    sentences: int
    batch_tokens: int
    stabiliser: float
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RolesSettings:
    """When a head counts as positional, syntactic or a rare-word head, and on which trees; the first ones decide."""

    trees: tuple[str, ...]
    sentences: int
    max_pieces: int
    batch_tokens: int
    bootstrap: int
    positional_share: float
    syntactic_margin: float
    margin_is_relative: bool
    relations: tuple[str, ...]
    min_cases: int
    rare_outside_top: int
    rare_share: float


@dataclass(frozen=True, slots=True)
class MapsSettings:
    """How many sentences attention maps are kept of, and how long they may be."""

    sentences: int
    min_words: int
    max_words: int


@dataclass(frozen=True, slots=True)
class SpeedSettings:
    """How many sentences are translated at once, how often, and by which search, when models are timed."""

    batch_sizes: tuple[int, ...]
    sentences: int
    repeats: int
    beam: int
    length_penalty: float


@dataclass(frozen=True, slots=True)
class ImportanceSettings:
    """How many dev sentences importance is averaged over."""

    sentences: int
    batch_tokens: int


@dataclass(frozen=True, slots=True)
class AblationSettings(TranslateSettings):
    """Single heads masked or left alone: how many test and dev sentences, and draws of the significance test."""

    dev_sentences: int
    resamples: int


@dataclass(frozen=True, slots=True)
class MaskingCurveSettings(TranslateSettings):
    """The share of heads masked at each step, how many random orders are walked too, draws for the intervals."""

    step: float
    random_orders: int
    resamples: int


@dataclass(frozen=True, slots=True)
class CheckpointsSettings(TranslateSettings):
    """The masking curve at checkpoints: which share of the heads is masked at each step, draws for the intervals."""

    step: float
    resamples: int


@dataclass(frozen=True, slots=True)
class SelectionSettings:
    """Heads chosen by other means: what the optimal choice must keep, and draws of the significance test.

    `at_least` is a number of heads for every layer of a kind of attention, `dec_enc`, or for one layer, `dec_enc.2`.
    """

    at_least: Mapping[str, int]
    resamples: int


@dataclass(frozen=True, slots=True)
class ParserSettings:
    """Where the Stanza models come from, and how they are trained when `model` is empty."""

    model: str
    train_sentences: int
    tagger_steps: int
    tagger_batch_sentences: int
    parser_steps: int
    parser_batch_words: int
    width: int
    embedding: int
    dropout: float
    word_dropout: float
    seed: int


Section = TypeVar("Section")
NESTED: dict[str, type[Any]] = {"hard_concrete": HardConcrete, "subset": SubsetSettings}


def section(kind: type[Section], content: Mapping[str, Any]) -> Section:
    """Fill a settings class from a mapping with exactly its keys."""
    values = {
        key: section(NESTED[key], value) if key in NESTED else tuple(value) if isinstance(value, list) else value
        for key, value in content.items()
    }
    expected = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if set(values) != expected:
        raise UserError(f"settings of {kind.__name__} need exactly the keys {', '.join(sorted(expected))}.")
    return kind(**values)


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes` laid over it, mapping by mapping; lists and values are replaced whole."""
    result = dict(copy.deepcopy(base))
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def resolve(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """All experiments of a configuration, resolved and checked.

    Raises UserError with one sentence that names the key and the nearest one that exists.
    """
    check(config, read_yaml(SCHEMAS / "config.schema.yaml"), "config.yaml")
    corpus_schema = read_yaml(SCHEMAS / "corpus.schema.yaml")
    for name, entry in config["corpora"].items():
        check(entry, corpus_schema, f"corpora.{name}")
    schema = read_yaml(SCHEMAS / "experiment.schema.yaml")
    experiments = {}
    for name, changes in config["experiments"].items():
        experiment = merged(config["defaults"], changes or {})
        check(experiment, schema, f"experiments.{name}")
        check_together(name, experiment, config)
        experiments[name] = experiment
    for name in config["run"]:
        if name not in experiments:
            raise UserError(f"run names {name!r}, which is not under experiments.{nearest(name, experiments)}")
    return experiments


def stage_settings(experiment: Mapping[str, Any], stage: str) -> dict[str, Any]:
    """The part of a resolved experiment that one stage is given."""
    return {name: experiment[name] for name in STAGE_SECTIONS[stage]}

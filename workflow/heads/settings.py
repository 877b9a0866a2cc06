"""Settings: an experiment is the defaults plus its own changes, checked against a closed schema, then split by stage.

Nothing here has a default value: config.yaml is the one home of them. Imported by the Snakefile, so kept light.
"""

from __future__ import annotations

import copy
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from heads.files import UserError, read_yaml
from heads.names import SCOPES, number_text

SCHEMAS = Path(__file__).parent.parent / "schemas"

# Stricter than the standard, which takes 3.0 for an integer and lets not-a-number pass every bound.
Validator = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, value: isinstance(value, int) and not isinstance(value, bool),
            "number": lambda _, value: (
                isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            ),
        }
    ),
)

STAGE_SECTIONS: dict[str, tuple[str, ...]] = {
    "bpe": ("bpe",),
    "baseline": ("model", "training", "baseline"),
    "gates": ("training", "gates"),
    "scratch": ("training", "scratch"),
    "score": ("translate",),
    "confidence": ("confidence",),
    "lrp": ("lrp",),
    "roles": ("roles",),
    "maps": ("maps",),
    "parser": ("parser",),
    "speed": ("speed",),
}
"""Which sections of an experiment each stage is told; a change elsewhere can not rerun it."""


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
class HardConcrete:
    """The distribution of a gate; `low` < 0 and `high` > 1 are the ends of the stretched interval."""

    temperature: float
    low: float
    high: float
    log_alpha_init: float


@dataclass(frozen=True, slots=True)
class GatesSettings:
    """The fine-tuning with gates."""

    updates: int
    average_last: int
    average_every: int
    gate_learning_rate: float
    record_every: int
    hard_concrete: HardConcrete


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


def section(kind: type[Section], content: Mapping[str, Any]) -> Section:
    """Fill a settings class from a mapping with exactly its keys."""
    values = {
        key: section(HardConcrete, value)
        if key == "hard_concrete"
        else tuple(value)
        if isinstance(value, list)
        else value
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
    _check(config, read_yaml(SCHEMAS / "config.schema.yaml"), "config.yaml")
    corpus_schema = read_yaml(SCHEMAS / "corpus.schema.yaml")
    for name, entry in config["corpora"].items():
        _check(entry, corpus_schema, f"corpora.{name}")
    schema = read_yaml(SCHEMAS / "experiment.schema.yaml")
    experiments = {}
    for name, changes in config["experiments"].items():
        experiment = merged(config["defaults"], changes or {})
        _check(experiment, schema, f"experiments.{name}")
        _check_together(name, experiment, config)
        experiments[name] = experiment
    for name in config["run"]:
        if name not in experiments:
            raise UserError(f"run names {name!r}, which is not under experiments.{_nearest(name, experiments)}")
    return experiments


def stage_settings(experiment: Mapping[str, Any], stage: str) -> dict[str, Any]:
    """The part of a resolved experiment that one stage is told."""
    return {name: experiment[name] for name in STAGE_SECTIONS[stage]}


def targets(experiment: Mapping[str, Any], scope: str) -> list[str]:
    """The targets of a scope as they stand in paths: lambdas in rising order, the control 0 first, then budgets."""
    sweep = experiment["sweep"]
    lambdas = {number_text(value) for value in sweep["lambdas"].get(scope, [])}
    budgets = dict.fromkeys(str(budget) for budget in sweep["budgets"].get(scope, []))
    control = {"0"} if lambdas or budgets else set()
    return [*(f"lam-{value}" for value in sorted(lambdas | control, key=float)), *(f"keep-{b}" for b in budgets)]


def _check_together(name: str, experiment: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    where, model = f"experiments.{name}", experiment["model"]
    if experiment["corpus"] not in config["corpora"]:
        corpus = experiment["corpus"]
        raise UserError(
            f"{where}.corpus is {corpus!r}, which is not under corpora.{_nearest(corpus, config['corpora'])}"
        )
    if model["width"] % model["heads"]:
        raise UserError(
            f"{where}.model.width {model['width']} does not divide into {model['heads']} heads: "
            "make width a multiple of heads."
        )
    if model["width"] % 2:
        raise UserError(f"{where}.model.width {model['width']} is odd: positions need an even width.")
    if experiment["maps"]["min_words"] > experiment["maps"]["max_words"]:
        raise UserError(f"{where}.maps.min_words is above max_words: swap them.")
    for scope in experiment["sweep"]["lambdas"]:
        if scope not in SCOPES:
            raise UserError(f"{where}.sweep.lambdas.{scope} is not a scope.{_nearest(scope, SCOPES)}")


def _check(content: Any, schema: dict[str, Any], where: str) -> None:
    error = best_match(Validator(schema).iter_errors(content))
    if error is not None:
        raise UserError(_sentence(error, where))


def _sentence(error: ValidationError, where: str) -> str:
    path = ".".join([where, *(str(part) for part in error.absolute_path)])
    schema: Any = error.schema
    instance: Any = error.instance
    if error.validator == "additionalProperties":
        known = schema["properties"]
        unknown = next(key for key in instance if key not in known)
        return f"{path}.{unknown} is not a setting.{_nearest(str(unknown), known)}"
    if error.validator == "required":
        missing = next(key for key in schema["required"] if key not in instance)
        return f"{path} lacks the key {missing}: add it."
    if error.validator == "type":
        text = f"{path} is {instance!r}, but must be of type {error.validator_value}."
        if isinstance(instance, str):
            text += " (YAML reads 1e-3 as text: write 0.001.)"
        return text
    if schema is False:
        return f"{path} is no setting of this kind of corpus: take it out."
    return f"{path}: {error.message}."


def _nearest(word: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f" Did you mean {close[0]}?" if close else f" Known: {', '.join(sorted(known))}."

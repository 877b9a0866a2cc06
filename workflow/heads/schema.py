"""Closed schemas, and what is wrong with a configuration in one sentence. Imported by the Snakefile, so kept light."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from heads.files import UserError
from heads.names import SCOPES

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


def check(content: Any, schema: dict[str, Any], where: str) -> None:
    """Raises UserError with one sentence that names the first wrong key, below `where`, and what would be right."""
    error = best_match(Validator(schema).iter_errors(content))
    if error is not None:
        raise UserError(_sentence(error, where))


def check_together(name: str, experiment: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Raises UserError where the settings of a resolved experiment do not go together."""
    where, model = f"experiments.{name}", experiment["model"]
    if experiment["corpus"] not in config["corpora"]:
        corpus = experiment["corpus"]
        raise UserError(
            f"{where}.corpus is {corpus!r}, which is not under corpora.{nearest(corpus, config['corpora'])}"
        )
    if model["width"] % model["heads"]:
        raise UserError(
            f"{where}.model.width {model['width']} does not divide into {model['heads']} heads: "
            "make width a multiple of heads."
        )
    if model["width"] % 2:
        raise UserError(f"{where}.model.width {model['width']} is odd: positions need an even width.")
    late = [update for update in experiment["baseline"]["keep_at"] if update > experiment["baseline"]["updates"]]
    if late:
        raise UserError(f"{where}.baseline.keep_at has {late[0]}, but the training ends before: take it out.")
    if experiment["maps"]["min_words"] > experiment["maps"]["max_words"]:
        raise UserError(f"{where}.maps.min_words is above max_words: swap them.")
    if max(experiment["speed"]["batch_sizes"]) > experiment["speed"]["sentences"]:
        raise UserError(f"{where}.speed.batch_sizes goes beyond speed.sentences: take out the larger batches.")
    heads = 3 * model["layers"] * model["heads"]
    selection = experiment["sweep"]["selection"]
    for budget in [*selection["budgets"], *selection["fine_tuned"]["budgets"]]:
        if budget > heads:
            raise UserError(f"{where}.sweep.selection.budgets has {budget}, but the model has {heads} heads: lower it.")
    for scope in [*experiment["sweep"]["lambdas"], *experiment["sweep"]["budgets"]]:
        if scope not in SCOPES:
            raise UserError(f"{where}.sweep: {scope} is not a scope.{nearest(scope, SCOPES)}")


def _sentence(error: ValidationError, where: str) -> str:
    path = ".".join([where, *(str(part) for part in error.absolute_path)])
    schema: Any = error.schema
    instance: Any = error.instance
    if error.validator == "additionalProperties":
        known = schema["properties"]
        unknown = next(key for key in instance if key not in known)
        return f"{path}.{unknown} is not a setting.{nearest(str(unknown), known)}"
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


def nearest(word: str, known: Mapping[str, Any]) -> str:
    """The end of a sentence about an unknown word: the nearest known one, or all of them."""
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f" Did you mean {close[0]}?" if close else f" Known: {', '.join(sorted(known))}."

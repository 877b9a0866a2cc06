"""Closed schemas, and what is wrong with a configuration in one sentence. Imported by the Snakefile, so kept light."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from heads.base.files import UserError
from heads.base.names import ATTENTIONS, SCOPES

SCHEMAS = Path(__file__).parents[2] / "schemas"

FOLDERS = ("corpora", "downloads", "figures", "tables")
"""What lies in results/ beside the experiments, so that no experiment can have such a name."""

WITHIN_BUDGET = ("optimal", "optimal_parameters")
"""Choices that must keep `selection.at_least` and cost the same for every head, so that the heads can be counted."""

EXPONENT = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)[eE][+-]?[0-9]+")
"""A number to everyone but YAML, which wants both a point before the e and a sign behind it."""

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
    if name in FOLDERS:
        raise UserError(f"{where} would lie in results/{name}, a folder of another use: give it another name.")
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
    for scope in [*experiment["sweep"]["lambdas"], *experiment["sweep"]["budgets"]]:
        if scope not in SCOPES:
            raise UserError(f"{where}.sweep: {scope} is not a scope.{nearest(scope, SCOPES)}")
    _check_parser(where, experiment, config["corpora"][experiment["corpus"]])
    _check_budgets(where, experiment)
    _check_selection(where, experiment)


def _check_parser(where: str, experiment: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    learns = "stanza" in experiment["roles"]["trees"] and not experiment["parser"]["model"]
    if learns and entry["kind"] != "grammar" and "parser_trees" not in entry:
        raise UserError(
            f"{where}.roles.trees names stanza, but corpora.{experiment['corpus']} has no treebank to train a parser "
            f"on: name one there under parser_trees, or a folder of Stanza models under {where}.parser.model."
        )


def _check_budgets(where: str, experiment: Mapping[str, Any]) -> None:
    """Hold the budgets of gates, `12` or `2-4-6`, against the heads of their kinds of attention."""
    of_kind = experiment["model"]["layers"] * experiment["model"]["heads"]
    for scope, budgets in experiment["sweep"]["budgets"].items():
        kinds = SCOPES[scope]
        for budget in budgets:
            told = f"{where}.sweep.budgets.{scope} has {budget}"
            numbers = [int(number) for number in str(budget).split("-")]
            if len(numbers) not in (1, len(kinds)):
                raise UserError(f"{told}, but {scope} is {len(kinds)} kind of attention: give one number.")
            there = of_kind if len(numbers) > 1 else of_kind * len(kinds)
            for number, group in zip(numbers, kinds if len(numbers) > 1 else [" and ".join(kinds)], strict=True):
                if number > there:
                    raise UserError(f"{told}, which asks for {number} of the {there} heads of {group}: lower it.")


def _check_selection(where: str, experiment: Mapping[str, Any]) -> None:
    """Hold the numbers of heads to be chosen against all heads, and against what an optimal choice must keep."""
    heads = len(ATTENTIONS) * experiment["model"]["layers"] * experiment["model"]["heads"]
    needed = sum(_at_least(f"{where}.selection.at_least", experiment).values())
    selection = experiment["sweep"]["selection"]
    for key, sweep in (("selection", selection), ("selection.fine_tuned", selection["fine_tuned"])):
        bound = [method for method in sweep["methods"] if method in WITHIN_BUDGET]
        for budget in sweep["budgets"]:
            told = f"{where}.sweep.{key}.budgets has {budget}"
            if budget > heads:
                raise UserError(f"{told}, but the model has {heads} heads: lower it.")
            if bound and budget < needed:
                raise UserError(
                    f"{told}, but {where}.selection.at_least makes {bound[0]} keep {needed}: "
                    "raise the budget or keep less."
                )


def _at_least(where: str, experiment: Mapping[str, Any]) -> dict[tuple[str, int], int]:
    """How many heads must be kept by (attention, layer); what is said of one layer goes before what is said of all."""
    layers, heads = experiment["model"]["layers"], experiment["model"]["heads"]
    asked: Mapping[str, int] = experiment["selection"]["at_least"]
    least: dict[tuple[str, int], int] = {}
    for key in sorted(asked, key=lambda key: "." in key):
        kind, _, layer = key.partition(".")
        if layer and int(layer) >= layers:
            raise UserError(f"{where} names {key}, but layers go from 0 to {layers - 1}: take it out.")
        if asked[key] > heads:
            raise UserError(f"{where}.{key} is {asked[key]}, but a layer has {heads} heads: lower it.")
        least |= dict.fromkeys(((kind, n) for n in ([int(layer)] if layer else range(layers))), asked[key])
    return least


def _sentence(error: ValidationError, where: str) -> str:
    if error.parent is not None and error.parent.validator == "anyOf":
        error = cast(ValidationError, error.parent)
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
        return f"{path} is {instance!r}, but must be of type {error.validator_value}.{_hint(error)}"
    if schema is False:
        return f"{path} is no setting of this kind of corpus: take it out."
    if "description" in schema:
        return f"{path}: {instance!r} is not {schema['description']}."
    known = _words(error)
    if known:
        return f"{path} is {instance!r}, which is not a word known here.{nearest(str(instance), known)}"
    return f"{path}: {error.message}."


def _hint(error: ValidationError) -> str:
    """What to write in place of a value of the wrong type, where that is plain."""
    wanted, instance = error.validator_value, error.instance
    if wanted in ("number", "integer") and isinstance(instance, str) and EXPONENT.fullmatch(instance):
        return " (YAML reads 1e-3 as text: write 0.001.)"
    if wanted == "array" and isinstance(instance, str | int | float):
        *above, key = error.absolute_path
        return f" (A list of one: write {key}{': ' if above else '='}[{instance}].)"
    return ""


def _words(error: ValidationError) -> list[str]:
    """The words that an enumeration allows, or several of them together."""
    allowed: Any = error.validator_value
    found = {"enum": allowed, "const": [allowed]}.get(str(error.validator), [])
    return [str(word) for word in found] + [word for branch in error.context or () for word in _words(branch)]


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: the nearest known one, or all of them."""
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f" Did you mean {close[0]}?" if close else f" Known: {', '.join(sorted(known))}."

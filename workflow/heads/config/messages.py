"""Error messages about settings: one sentence that names the key by its full path and the way out."""

import difflib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from heads.base.files import UserError

RENAMED = {
    "curve": "is now called masking_curve: rename it",
    "moments": "is now called checkpoints: rename it",
    "other": "is now called out_of_domain: rename it",
    "source_pieces": "is now called source_subwords: rename it",
    "target_pieces": "is now called target_subwords: rename it",
    "max_pieces": "is now called max_subwords: rename it",
    "optimal_parameters": "is the same as optimal: write that",
    "optimal_latency": "chose by measured time, which was mostly noise: take it out",
}
"""Former keys and values of settings, and what to do about them."""

EXPONENT = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)[eE][+-]?[0-9]+")
"""A number with an exponent; YAML reads it as text unless it has both a point before the e and a sign after it."""
PLAIN = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)")

TYPES = {
    "int_type": "integer",
    "float_type": "number",
    "finite_number": "number",
    "bool_type": "boolean",
    "string_type": "string",
    "path_type": "string",
    "tuple_type": "array",
    "mapping_type": "object",
    "dict_type": "object",
    "model_type": "object",
}
"""JSON's name of the type that a value must have, by the type of pydantic's error."""

QUOTED = re.compile("'([^']*)'")
"""A word in pydantic's list of those that are expected, such as 'adam' or 'muon'."""


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Pydantic's validator of a type, made once."""
    return TypeAdapter(kind)


def validated(kind: Any, content: Any, where: str = "", **context: Any) -> Any:
    """`content` as an object of the type `kind`; messages put `where` before the path of a wrong key.

    Raises UserError with one sentence about the first error.
    """
    try:
        return adapter(kind).validate_python(content, context=context)
    except ValidationError as error:
        raise UserError(_sentence(error.errors(include_url=False)[0], where)) from None


def fault(rest: str) -> PydanticCustomError:
    """A validation error; `rest` is the part of the message after the value's path."""
    return PydanticCustomError("fault", "{rest}", {"rest": rest})


def unknown(key: object, known: Iterable[str]) -> str:
    """The part of the message after a mapping's path, about a key that the mapping may not have."""
    if str(key) in RENAMED:
        return f".{key} {RENAMED[str(key)]}."
    return f".{key} is not a setting.{nearest(str(key), known)}"


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the most similar known word, else all of them."""
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f" Did you mean {close[0]}?" if close else f" Known: {', '.join(sorted(known))}."


def _sentence(error: ErrorDetails, where: str) -> str:
    *place, last = [str(part) for part in error["loc"]] or [""]
    of_key = last == "[key]"
    key = place.pop() if of_key else last
    # Pydantic's path includes the alternative that it chose in a union; ours are named in angle brackets.
    parts = [part for part in (place if of_key else [*place, last]) if part and not re.fullmatch("<.*>", part)]
    return _after_path(parts, where, _about_key(error, key) if of_key else _about_value(error, parts))


def _after_path(parts: Sequence[str], where: str, rest: str) -> str:
    """The whole message; for a top-level key it begins with config.yaml."""
    inner = ".".join([*([where] if where else []), *parts])
    of_file = not where and (not parts or (len(parts) == 1 and not rest.startswith(".")))
    return f"config.yaml{'.' if inner else ''}{inner}{rest}" if of_file else f"{inner}{rest}"


def _about_key(error: ErrorDetails, key: str) -> str:
    context: dict[str, Any] = error.get("ctx", {})
    if error["type"] == "literal_error":
        return unknown(key, QUOTED.findall(context["expected"]))
    return f": the key {key!r} is not {context.get('meaning', 'known here')}."


def _about_value(error: ErrorDetails, parts: Sequence[str]) -> str:
    kind, value = error["type"], error["input"]
    context: dict[str, Any] = error.get("ctx", {})
    if kind == "fault":
        return str(context["rest"])
    if kind in TYPES:
        return f" is {value!r}, but must be of type {TYPES[kind]}.{_hint(TYPES[kind], value, parts)}"
    if kind == "literal_error" and str(value) in RENAMED:
        return f" is {value!r}, which {RENAMED[str(value)]}."
    if kind == "literal_error":
        return f" is {value!r}, which is not a known value.{nearest(str(value), QUOTED.findall(context['expected']))}"
    if kind == "meaning":
        return f": {value!r} is not {context['meaning']}."
    if kind == "too_short":
        return " is empty: name at least one."
    return f" is {value!r}, but {error['msg'].removeprefix('Input ')}."


def _hint(wanted: str, value: Any, parts: Sequence[str]) -> str:
    """A hint on what to write in place of a value of the wrong type, if that is clear; else ""."""
    if wanted in ("number", "integer") and isinstance(value, str) and EXPONENT.fullmatch(value):
        return " (YAML reads 1e-3 as text: write 0.001.)"
    if wanted in ("number", "integer") and isinstance(value, str) and PLAIN.fullmatch(value):
        return " (It is text: remove the quotes; inside braces of --config all is text, so use a --configfile.)"
    if wanted == "array" and isinstance(value, str | int | float) and parts:
        *above, key = parts
        return f" (For a list of one, write {key}{': ' if above else '='}[{value}].)"
    return ""

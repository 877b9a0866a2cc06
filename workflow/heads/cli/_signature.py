"""The command line of a stage, made from the signature of its function.

A parameter is a flag, which is required if it has no default; a positional-only parameter is a word without a flag. Its
type is `Annotated`: with the help last; before that perhaps a short name such as "-o", a dict of further keywords for
argparse, `Written` and `OneOf`. A parameter whose type is a dataclass stands for the fields of that.
"""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, get_args, get_origin

from heads.base.outputs import FILE, Output

Stage = Callable[..., Any]


@dataclass(frozen=True)
class Written:
    """Marks what a stage writes, which is checked before its work begins; kind and beside as in `Output`."""

    kind: str = FILE
    beside: Callable[[Path], Path] | None = None


@dataclass(frozen=True)
class OneOf:
    """Marks flags of which only one may be given, and one has to be if they are required."""

    what: str
    required: bool = False


@dataclass(frozen=True)
class Flag:
    """What a parameter says of its flag."""

    name: str
    words: list[str]
    """The flag, after its short name; without hyphens, the name of a word that stands without a flag."""
    keywords: dict[str, Any]
    """What argparse is told."""
    marks: list[Any]
    """`Written` and `OneOf`, if they are there."""


def flags_of(stage: Stage) -> list[Flag]:
    """The flags of a stage, those that have to be given first."""
    return sorted(map(_flag, _parameters(stage)), key=lambda flag: "default" in flag.keywords)


def _parameters(stage: Stage) -> Iterator[Parameter]:
    for parameter in signature(stage).parameters.values():
        yield from _parameters(parameter.annotation) if _is_group(parameter) else [parameter]


def _is_group(parameter: Parameter) -> bool:
    return is_dataclass(parameter.annotation)


def _flag(parameter: Parameter) -> Flag:
    kind, *said = get_args(parameter.annotation)
    words, required = [word for word in said if isinstance(word, str)], parameter.default is Parameter.empty
    keywords: dict[str, Any] = {"help": words.pop()}
    keywords |= {"action": "store_true"} if kind is bool else {"type": (*get_args(kind), kind)[0]}
    if get_origin(kind) is Sequence:
        keywords["nargs"] = "+" if required else "*"
    for further in said:
        keywords |= further if isinstance(further, dict) else {}
    if not required:
        keywords["default"] = parameter.default
    if parameter.kind is Parameter.POSITIONAL_ONLY:
        words = [parameter.name]
    else:
        words.append(f"--{parameter.name.replace('_', '-')}")
        keywords["required"] = required
    return Flag(parameter.name, words, keywords, [mark for mark in said if isinstance(mark, Written | OneOf)])


def parser_of(stage: Stage, program: str, description: str) -> ArgumentParser:
    """The parser of the flags of a stage."""
    parser = ArgumentParser(prog=program, description=description, formatter_class=RawDescriptionHelpFormatter)
    groups: dict[str, Any] = {}
    for flag in flags_of(stage):
        place: Any = parser
        for mark in flag.marks:
            if isinstance(mark, OneOf):
                if mark.what not in groups:
                    groups[mark.what] = parser.add_mutually_exclusive_group(required=mark.required)
                place = groups[mark.what]
        place.add_argument(*flag.words, **flag.keywords)
    return parser


def outputs_of(stage: Stage) -> dict[str, Output]:
    """What is known about each flag that names an output, by name."""
    written = ((flag, mark) for flag in flags_of(stage) for mark in flag.marks if isinstance(mark, Written))
    return {flag.name: Output(flag.words[-1], mark.kind, mark.beside) for flag, mark in written}


def called(stage: Stage, given: Mapping[str, Any]) -> Any:
    """What a stage, or a dataclass, makes of the values of its flags by name."""
    bound = signature(stage).bind_partial()
    for name, parameter in signature(stage).parameters.items():
        bound.arguments[name] = called(parameter.annotation, given) if _is_group(parameter) else given[name]
    return stage(*bound.args, **bound.kwargs)

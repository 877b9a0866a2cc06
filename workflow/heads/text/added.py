"""Subwords that the files of transformers add to a vocabulary, and names for all rows of a model's matrices.

Texts are split at added subwords before the rest is cut into subwords.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.interop.hub import ADDED
from heads.text.special_ids import nameless

MASK = "<mask>"
"""What masked pretraining predicts; it may lack a row where that is over, as in bart-large-cnn."""
OPTIONS = ("special", "lstrip", "rstrip", "single_word")


@dataclass(frozen=True, slots=True)
class Added:
    """An added subword, with transformers' options of how it is found in texts."""

    number: int
    """The model's own id of it."""
    special: bool = False
    """Whether it stands for no text."""
    lstrip: bool = False
    """Whether it takes the blanks before it away; `rstrip`: those after it."""
    rstrip: bool = False
    single_word: bool = False
    """Whether it is only found between blanks."""


def added_in(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> dict[str, Added]:
    """What the files of a folder's tokeniser add, by name. files: their contents by file name.

    Raises UserError for one that cannot be read so.
    """
    found: dict[str, Added] = {}
    special: dict[str, dict[str, Any]] = {}
    for file, content in files.items():
        try:
            if file == ADDED:  # nothing but ids by name
                found = {name: Added(int(number)) for name, number in content.items()} | found
                continue
            found |= dict(_described(content))
            special |= listed_in(content)
        except (LookupError, TypeError, ValueError, AttributeError):
            raise UserError(f"{folder / file} does not say which subwords it adds: copy it again.") from None
    return {
        name: replace(one, **_options(special[name] | {"special": True})) if name in special else one
        for name, one in found.items()
    }


def _described(content: Mapping[str, Any]) -> Iterator[tuple[str, Added]]:
    """Those that tokenizer_config.json or tokenizer.json describes, with their names."""
    numbered = [(number, one) for number, one in (content.get("added_tokens_decoder") or {}).items()]
    numbered += [(one["id"], one) for one in content.get("added_tokens") or ()]
    for number, one in numbered:
        yield str(one["content"]), Added(int(number), **_options(one))


def _options(described: Mapping[str, Any]) -> dict[str, bool]:
    return {key: bool(described[key]) for key in OPTIONS if key in described}


def described_token(name: str, one: Added) -> dict[str, Any]:
    """An added subword as transformers' tokenizer_config.json describes it."""
    return {"content": name, "normalized": not one.special, **{key: getattr(one, key) for key in OPTIONS}}


def listed_in(content: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The special subwords that a file lists without ids, in order, and what it says of each."""
    described = content.get("additional_special_tokens") or content.get("extra_special_tokens") or ()
    listed = [one if isinstance(one, dict) else {"content": str(one)} for one in described]
    return {str(one["content"]): one for one in listed}


def named_rows(folder: Path, numbered: Mapping[str, int], rows: int, matrix: str) -> list[str]:
    """The name of each row of a matrix; a vocabulary is shorter where a matrix was padded to a round number of rows.

    numbered: ids by name. Raises UserError for a subword without a row.
    """
    names = [nameless(row) for row in range(rows)]
    for name, number in numbered.items():
        if 0 <= number < rows:
            names[number] = name
        elif name != MASK:
            raise UserError(
                f"{folder} has a vocabulary that does not fit its weights, {max(numbered.values()) + 1} subwords for "
                f"{rows} rows of {matrix}: take all files from the same model."
            )
    return names


def pattern_of(added: Mapping[str, Added]) -> str:
    """A regular expression that finds the longest added subword, with each name in a group of its own."""
    return "|".join(_pattern(name, added[name]) for name in sorted(added, key=lambda name: (-len(name), name)))


def _pattern(name: str, one: Added) -> str:
    found = f"({re.escape(name)})"
    found = f"(?<![^ ]){found}(?![^ ])" if one.single_word else found
    return r"\s*" * one.lstrip + found + r"\s*" * one.rstrip


def parts_of(text: str, added: re.Pattern[str] | None) -> Iterator[tuple[int, str, bool]]:
    """The parts of a text in order: where each begins, its characters, and whether it is an added subword."""
    end = 0
    for found in added.finditer(text) if added else ():
        yield end, text[end : found.start()], False
        start, after = found.span(found.lastindex or 0)
        yield start, text[start:after], True
        end = found.end()
    yield end, text[end:], False

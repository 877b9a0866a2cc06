"""Write `defaults` of config.yaml, and the JSON schema that editors read, from the models of the settings.

`make settings` does both.
"""

import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from heads.base.files import write_text
from heads.base.targets import Target, number_text
from heads.config.experiment import Config, Experiment
from heads.config.fields import Closed
from heads.config.messages import adapter

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "config.yaml"
SCHEMA = ROOT / "workflow/schemas/config.schema.json"
WIDTH = 126
COMMENT_COLUMN = 31


class _Schema(GenerateJsonSchema):
    """A JSON schema without titles, which repeat the keys, and without null for settings that may be left out."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - asked of every field
        """No setting has a title."""
        return False

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        """The schema of a mapping; refuse a name that does not match, as pydantic does, but the pattern does not."""
        made = super().dict_schema(schema)
        return {**made, "additionalProperties": False} if "patternProperties" in made else made

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """The schema of a setting with a default; a setting that may be left out gets none."""
        if schema.get("default", "some") is None:
            return self.generate_inner(schema["schema"]["schema"])
        return super().default_schema(schema)


def json_schema() -> str:
    """The text of the JSON schema of config.yaml, with one model per line."""
    made = adapter(Config).json_schema(schema_generator=_Schema)
    for model in [made, *made["$defs"].values()]:
        model.pop("title", None)
    whole = {"$schema": GenerateJsonSchema.schema_dialect, **made, "$defs": "MODELS"}
    models = ",\n".join(f"{json.dumps(name)}: {_dumped(model)}" for name, model in made["$defs"].items())
    return _dumped(whole).replace('"MODELS"', f"{{\n{models}\n}}") + "\n"


def _dumped(content: object) -> str:
    return json.dumps(content, ensure_ascii=False)


def with_defaults(config: str) -> str:
    """The text of config.yaml with `defaults` from the models; the rest is unchanged."""
    before, key, rest = config.partition("\ndefaults:\n")
    _, after, others = rest.partition("\nexperiments:\n")
    if not key or not after:
        raise ValueError("config.yaml has no line `defaults:` with a line `experiments:` below it")
    return before + key + "\n".join(_lines(Experiment(), 1)) + "\n" + after + others


def _lines(model: Closed, level: int) -> Iterator[str]:
    indent = "  " * level
    for name, description in _in_order(type(model)):
        value = getattr(model, name)
        if level == 1 and isinstance(value, Closed):
            yield ""
        if isinstance(value, Closed):
            yield from _commented(f"{indent}{name}:", description)
            yield from _lines(value, level + 1)
        elif isinstance(value, Mapping):
            flat = f"{indent}{name}: {_flow(value)}"
            nested = [f"{indent}  {key}: {_flow(inner)}" for key, inner in value.items()]
            first, *more = [flat] if len(flat) <= WIDTH else [f"{indent}{name}:", *nested]
            yield from _commented(first, description)
            yield from more
        else:
            yield from _commented(f"{indent}{name}: {_flow(value)}", description)


def _in_order(kind: type[Closed]) -> list[tuple[str, str]]:
    """Name and description of the settings of a model, those of its own class first, then inherited ones."""
    names = [name for name in kind.__annotations__ if name in kind.model_fields]
    return [(name, kind.model_fields[name].description or "") for name in dict.fromkeys([*names, *kind.model_fields])]


def _commented(line: str, description: str) -> Iterator[str]:
    """A line with its description as a comment after it if that fits, else above it."""
    behind = f"{line:<{COMMENT_COLUMN - 2}}  # {description}"
    if "\n" not in description and len(behind) <= WIDTH:
        yield behind
        return
    indent = " " * (len(line) - len(line.lstrip()))
    for paragraph in description.split("\n"):
        yield from textwrap.wrap(
            paragraph,
            WIDTH,
            initial_indent=f"{indent}# ",
            subsequent_indent=f"{indent}# ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    yield from textwrap.wrap(line, WIDTH, subsequent_indent=f"{indent}  ", break_on_hyphens=False)


def _flow(value: Any) -> str:
    """A value as YAML on one line; numbers have no exponent, since YAML would read them as text."""
    if isinstance(value, bool) or value == "":
        return json.dumps(value)
    if isinstance(value, Target):
        return value.columns[1]
    if isinstance(value, float):
        return repr(value) if "e" not in repr(value) else number_text(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_flow(inner)}' for key, inner in value.items())}}}"
    return f"[{', '.join(map(_flow, value))}]" if isinstance(value, tuple) else str(value)


def main() -> None:
    """Write config.yaml and the schema."""
    write_text(CONFIG, with_defaults(CONFIG.read_text(encoding="utf-8")))
    write_text(SCHEMA, json_schema())


if __name__ == "__main__":
    main()

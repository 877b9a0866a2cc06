"""Building blocks of the settings models: settings with defaults and descriptions, closed models, bounded types.

The models are plain dataclasses, so that code and tests create them like any others; pydantic reads their types to
check settings and to make the JSON schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import MISSING, field, fields
from typing import Annotated, Any, ClassVar, cast

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetPydanticSchema, Strict, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from heads.config.messages import fault, unknown


def setting(default: Any, description: str) -> Any:
    """A setting with its default and the description that config.yaml and editors show."""
    if isinstance(default, Mapping):
        shown = {"description": description, "json_schema_extra": {"default": dict(default)}}
        return field(default_factory=lambda: copy(default), metadata=shown)
    return field(default=default, metadata={"description": description})


def required(description: str) -> Any:
    """A setting without a default."""
    return field(metadata={"description": description})


def section_of(kind: Callable[[], Any], description: str) -> Any:
    """A setting that is a section of its own, with the defaults of its model."""
    return field(default_factory=kind, metadata={"description": description})


class Closed:
    """A settings model that rejects unknown keys and keys without a value.

    If it is read with whole=True, as `defaults` are, a missing key is an error even if it has a default.
    """

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        fields_only: dict[str, Any] = {**handler.resolve_ref_schema(handler(source))}
        # The name moves to the check: pydantic looks up a model that it meets a second time by its name.
        name = fields_only.pop("ref")
        return core_schema.with_info_before_validator_function(cls.check_keys, cast(CoreSchema, fields_only), ref=name)

    @classmethod
    def check_keys(cls, content: Any, info: ValidationInfo) -> Any:
        """`content` unchanged; raise pydantic's error if a mapping does not have the keys of the model."""
        if not isinstance(content, Mapping):
            return content
        known = {one.name: one for one in fields(cls)}  # type: ignore[arg-type]
        for key, value in content.items():
            if key not in known:
                raise fault(cls.about_unknown(key))
            if value is None:
                raise fault(f".{key} has no value: write one or take the key out.")
        whole = (info.context or {}).get("whole", False)
        for key, one in known.items():
            optional = one.default is not MISSING or one.default_factory is not MISSING
            if key not in content and (whole or not optional):
                raise fault(f" lacks the key {key}: add it.")
        return content

    @classmethod
    def about_unknown(cls, key: object) -> str:
        """The message about a key that this model does not have."""
        return unknown(key, [one.name for one in fields(cls)])  # type: ignore[arg-type]


def one_of(*words: str) -> GetPydanticSchema:
    """Annotation of a string: it must be one of these words."""
    schema = core_schema.custom_error_schema(
        core_schema.literal_schema(list(words)),
        custom_error_type="word",
        custom_error_message="not a known value here",
        custom_error_context={"known": " ".join(words)},
    )
    return GetPydanticSchema(lambda _source, _handler: schema)


def meant(meaning: str) -> GetPydanticSchema:
    """Annotation of a type: whatever is wrong, the message says that the value is not `meaning`."""
    return GetPydanticSchema(
        lambda source, handler: core_schema.custom_error_schema(
            handler(source),
            custom_error_type="meaning",
            custom_error_message="not as it was meant",
            custom_error_context={"meaning": meaning},
        )
    )


class EachOnce:
    """Annotation of a list: it must not contain an item twice."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        return {**handler(schema), "uniqueItems": True}

    @staticmethod
    def check(items: tuple[Any, ...]) -> tuple[Any, ...]:
        """`items` unchanged; raise pydantic's error if one of them occurs twice."""
        for place, item in enumerate(items):
            if item in items[:place]:
                raise fault(f" names {item!r} twice: take one out.")
        return items


# Strict: text and booleans are not numbers, and 3.0 is not an integer.
Text = Annotated[str, Strict()]
YesNo = Annotated[bool, Strict()]
Integer = Annotated[int, Strict()]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Count = Annotated[Integer, Field(ge=1)]
CountOrZero = Annotated[Integer, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
PositiveShare = Annotated[Number, Field(gt=0, le=1)]
BelowOne = Annotated[Number, Field(ge=0, lt=1)]
Positive = Annotated[Number, Field(gt=0)]
AtLeastZero = Annotated[Number, Field(ge=0)]
Resamples = Annotated[Integer, Field(ge=100)]
Name = Annotated[
    str,
    Strict(),
    Field(pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$"),
    meant("a name of letters, digits, dots, _ and - that begins with a letter or digit"),
]

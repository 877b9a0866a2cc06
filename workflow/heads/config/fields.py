"""Building blocks of the settings models: settings with defaults and descriptions, closed models, bounded types."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetPydanticSchema,
    ModelWrapValidatorHandler,
    PrivateAttr,
    Strict,
    ValidationInfo,
    model_validator,
)
from pydantic_core import core_schema

from heads.config.messages import fault, unknown


def setting(default: Any, description: str) -> Any:
    """A setting with its default and the description that config.yaml and editors show."""
    return Field(default, description=description)


def required(description: str) -> Any:
    """A setting without a default."""
    return Field(description=description)


def section_of(kind: Callable[[], Any], description: str) -> Any:
    """A setting that is a section of its own, with the defaults of its model."""
    return Field(default_factory=kind, description=description)


class Closed(BaseModel):
    """A settings model that rejects unknown keys and keys without a value.

    If it is read with whole=True, as `defaults` are, a missing key is an error even if it has a default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _with_its_keys(cls, content: Any, info: ValidationInfo) -> Any:
        return cls.check_keys(content, info)

    @classmethod
    def check_keys(cls, content: Any, info: ValidationInfo) -> Any:
        """`content` unchanged; raise pydantic's error if a mapping does not have the keys of the model."""
        if not isinstance(content, Mapping):
            return content
        for key, value in content.items():
            if key not in cls.model_fields:
                raise fault(cls.about_unknown(key))
            if value is None and info.context is not None:  # code may spell out what is not given, settings may not
                raise fault(f".{key} has no value: write one or take the key out.")
        whole = (info.context or {}).get("whole", False)
        for key, one in cls.model_fields.items():
            if key not in content and (whole or one.is_required()):
                raise fault(f" lacks the key {key}: add it.")
        return content

    @classmethod
    def about_unknown(cls, key: object) -> str:
        """The message about a key that this model does not have."""
        return unknown(key, cls.model_fields)


class AsWritten(Closed):
    """A settings model that keeps the mapping it was read from, of which stages are told parts, word for word.

    A stage is made again if its params are other text, so 1 may not become 1.0, nor a default be added.
    """

    _written: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _keeping_the_mapping(cls, content: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        read = handler(content)
        if isinstance(content, Mapping):
            read._written = content
        return read

    @property
    def written(self) -> Mapping[str, Any]:
        """The mapping it was read from; empty if code made it."""
        return self._written


def one_of(*words: str) -> GetPydanticSchema:
    """Annotation of a string: it must be one of these words."""
    return GetPydanticSchema(lambda _source, _handler: core_schema.literal_schema(list(words)))


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


def _distinct(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """`items` unchanged; raise pydantic's error if one of them occurs twice."""
    for place, item in enumerate(items):
        if item in items[:place]:
            raise fault(f" names {item!r} twice: take one out.")
    return items


EachOnce = GetPydanticSchema(
    lambda source, handler: core_schema.no_info_after_validator_function(_distinct, handler(source)),
    lambda schema, handler: {**handler(schema), "uniqueItems": True},
)
"""Annotation of a list: it must not contain an item twice."""

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

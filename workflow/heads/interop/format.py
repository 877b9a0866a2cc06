"""What is known of a family of models without reading any weights: the workflow is planned with it, without torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Heads = dict[str, tuple[int, int]]
"""Layers and heads per layer for each kind of attention."""


@dataclass(frozen=True, slots=True)
class Format:
    """How the files of a family are known, and what they say without their weights."""

    name: str
    task: str
    fits: Callable[[Path, str], bool]
    """Whether a folder or file is in this format, by its path and the `model_type` in its config.json, if any."""
    files: Callable[[Path], Sequence[Path]]
    """All files that an import reads."""
    heads: Callable[[Path], Heads]
    """Empty if a folder does not say: the import, which reads all of it, reports what is wrong."""
    not_there: Callable[[Path], str]
    """The error message for a folder that does not exist."""
    model_types: Mapping[str, str] = field(default_factory=dict)
    """The models by their `model_type` in config.json, as pages call them; empty if transformers does not write it."""
    from_hub: Sequence[str] = ()
    """Names of the files to download besides config.json."""
    from_hub_if_there: Sequence[str] = ()

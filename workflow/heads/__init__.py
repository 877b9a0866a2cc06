"""Which attention heads a Transformer needs, and what they do: `heads.inspect` of any model, `heads.load` of it."""

from __future__ import annotations

from typing import Any

__all__ = ["inspect", "load"]


def __getattr__(name: str) -> Any:
    """Both functions, imported when they are asked for: the workflow imports this package wherever it is parsed."""
    if name == "inspect":
        from heads.one_model.inspecting import inspect

        return inspect
    if name == "load":
        from heads.translation.opening import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

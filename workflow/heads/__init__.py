"""Which attention heads a Transformer needs and what they do: `heads.inspect` and `heads.load` any model."""

from typing import Any

__all__ = ["inspect", "load"]


def __getattr__(name: str) -> Any:
    """Import both functions only on first use, because the workflow imports this package whenever it is parsed."""
    if name == "inspect":
        from heads.one_model.inspecting import inspect

        return inspect
    if name == "load":
        from heads.interop.opening import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Functions by name, and the modules that a module of this package imports, found by reading its import lines."""

import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
IMPORT = re.compile(r"^\s*from heads\.([\w.]+) import (.*)", re.MULTILINE)


def named_function(name: str) -> Callable[..., Any]:
    """The function with a name such as `tables.units.units_table`."""
    module, _, function = name.rpartition(".")
    found: Callable[..., Any] = getattr(import_module(f"heads.{module}"), function)
    return found


def reached(modules: Iterable[str], rooms: tuple[str, ...]) -> list[str]:
    """Those of `modules`, such as `cli.roles`, and all that they import, directly or not, that are in `rooms`; sorted.

    rooms: subpackages and modules.
    """
    found, waiting = {*modules}, [*modules]
    while waiting:
        new = imported(waiting.pop()) - found
        found |= new
        waiting += new
    return sorted(name for name in found if name in rooms or name.rpartition(".")[0] in rooms)


@cache
def imported(module: str) -> frozenset[str]:
    """The modules named by the import lines of one module."""
    text = _path(module).read_text(encoding="utf-8")
    named = [(home, re.findall(r"\w+", names)) for home, names in IMPORT.findall(text)]
    possible = [name for home, names in named for name in (home, *(f"{home}.{name}" for name in names))]
    return frozenset(name for name in possible if _path(name).is_file())


def _path(module: str) -> Path:
    return PACKAGE / f"{module.replace('.', '/')}.py"

"""The modules that a module of this package imports, directly or indirectly, found by reading its import lines."""

import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
IMPORT = re.compile(r"^\s*from heads\.([\w.]+) import (.*)", re.MULTILINE)


def reached(module: str, rooms: tuple[str, ...]) -> list[str]:
    """The modules in `rooms` (subpackages, modules) that one such as `cli.roles` imports, directly or not; sorted."""
    found, waiting = set[str](), [module]
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

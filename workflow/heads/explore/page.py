"""The page: one HTML file that holds its style, its scripts and its data, and asks for nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PARTS = Path(__file__).parent
SCRIPTS = ("elements", "state", "grids", "head_card", "attention", "drawing", "closing", "concrete", "claims", "start")
"""In the order in which they build on each other; each is plain JavaScript with functions at its top."""


def page(content: Any) -> str:
    """The file as text. content: what `heads.explore.content` describes."""
    text = (PARTS / "page.html").read_text(encoding="utf-8")
    scripts = "\n".join((PARTS / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    parts = {"style": (PARTS / "page.css").read_text(encoding="utf-8"), "data": as_data(content), "scripts": scripts}
    for name, part in parts.items():
        # Not re.sub: a backslash of the data must stay one.
        before, found, after = text.partition(f"<!-- {name} -->")
        if not found:
            raise ValueError(f"page.html has no place for {name}")
        text = before + part + after
    return text


def as_data(content: Any) -> str:
    """JSON that may stand between script tags: nothing in it can end them or open a comment."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")

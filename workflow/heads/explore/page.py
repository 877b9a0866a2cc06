"""The page: one HTML file with its style, scripts and data, which loads nothing else."""

import json
from pathlib import Path
from typing import Any

PARTS = Path(__file__).parent
SCRIPTS = ("elements", "state", "grids", "head_card", "attention", "drawing", "closing", "concrete", "claims", "start")
"""In order of dependence; each is plain JavaScript with functions at the top level."""


def page(content: Any) -> str:
    """The HTML file as text. content: as described in `heads.explore.content`."""
    text = (PARTS / "page.html").read_text(encoding="utf-8")
    scripts = "\n".join((PARTS / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    parts = {"style": (PARTS / "page.css").read_text(encoding="utf-8"), "data": as_data(content), "scripts": scripts}
    for name, part in parts.items():
        # Not re.sub, which would interpret backslashes in the data.
        before, found, after = text.partition(f"<!-- {name} -->")
        if not found:
            raise ValueError(f"page.html has no place for {name}")
        text = before + part + after
    return text


def as_data(content: Any) -> str:
    """JSON that is safe between script tags: nothing in it can close them or open a comment."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")

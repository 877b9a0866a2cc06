"""The original files of a third-party model, each of which is read once."""

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

Content = TypeVar("Content")


class OriginalFiles:
    """The files that a model came with, and what was read of them, for as long as the model is in memory."""

    def __init__(self, place: Path) -> None:
        """place: their folder, or the model file."""
        self.place = place
        self.known: dict[Hashable, Any] = {}

    def once(self, read: Callable[..., Content], *how: Hashable) -> Content:
        """What a function makes of these files, and of `how` if given; when it is asked for again, it is known."""
        key = (read, *how)
        if key not in self.known:
            self.known[key] = read(self, *how)
        found: Content = self.known[key]
        return found

"""A progress line on a terminal: the current step, and how many steps are done."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TextIO


class Progress:
    """The progress line; nothing is written if the stream is not a terminal."""

    def __init__(self, stream: TextIO, steps: int) -> None:
        self.stream, self.steps, self.done = stream, steps, 0

    def __enter__(self) -> Self:
        return self

    def report(self, what: str) -> None:
        """Show that a step begins."""
        self._write(f"[{'#' * self.done}{'.' * (self.steps - self.done)}] {what}")
        self.done += 1

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._write("")

    def _write(self, line: str) -> None:
        if self.stream.isatty():
            self.stream.write(f"\r\x1b[K{line}")
            self.stream.flush()

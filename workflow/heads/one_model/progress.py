"""A line on a terminal that says what is being done, and how much of all that is."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TextIO


class Progress:
    """The line; where the stream is no terminal, nothing is written."""

    def __init__(self, stream: TextIO, steps: int) -> None:
        self.stream, self.steps, self.done = stream, steps, 0

    def __enter__(self) -> Self:
        return self

    def report(self, what: str) -> None:
        """A step begins."""
        self._write(f"[{'#' * self.done}{'.' * (self.steps - self.done)}] {what}")
        self.done += 1

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._write("")

    def _write(self, line: str) -> None:
        if self.stream.isatty():
            self.stream.write(f"\r\x1b[K{line}")
            self.stream.flush()

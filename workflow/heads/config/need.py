"""What the plan asks of a table or figure: which files of which runs it reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from heads.base.runs import Run


class Need(Protocol):
    """What a table or figure reads, as `heads.tables.needs` says it."""

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        """Names of files by kind of run."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Of experiments with these tasks."""

    @property
    def optional(self) -> tuple[str, ...]:
        """Those of them that are read where there are any."""

    def wants(self, run: Run) -> bool:
        """Whether anything of this run is read."""

    def inputs(self, folders: Sequence[str], without: Collection[str] = ()) -> list[str]:
        """The files to be read, below folders of runs."""

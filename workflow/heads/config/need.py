"""The interface by which the plan learns which files of which runs a table or figure reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from heads.base.runs import Run


class Need(Protocol):
    """What a table or figure reads, as listed in `heads.tables.needs`."""

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        """File names by kind of run."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks whose experiments are read."""

    @property
    def optional(self) -> tuple[str, ...]:
        """Names of files that are read only if an experiment has them."""

    def wants(self, run: Run) -> bool:
        """Whether any file of this run is read."""

    def inputs(self, folders: Sequence[str], without: Collection[str] = ()) -> list[str]:
        """The paths of the files to read in these run folders, except the file names in `without`."""

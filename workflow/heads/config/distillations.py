"""Text that models of others translate, for all corpora together: the rules ask here for models, files and flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.base.firefox import slug
from heads.config.corpora import distilled_of
from heads.formats.registry import format_of


class Distillations:
    """The distilled parts of some corpora by the name of their files, and their models by the name of a folder."""

    def __init__(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """entries: of corpora. Raises UserError for two models whose folders would have one name."""
        self.parts = {name: part for entry in entries for name, part in distilled_of(entry).items()}
        self.models: dict[str, str] = {}
        for part in self.parts.values():
            other = self.models.setdefault(slug(part.distilled_by), part.distilled_by)
            if other != part.distilled_by:
                raise UserError(
                    f"distilled_by: {other} and {part.distilled_by} would lie in one folder: rename one of the two."
                )

    def files_of_model(self, model: str) -> list[str]:
        """The files that a model is taken from, by the name of its folder below results/models.

        Raises UserError where there is no such model.
        """
        try:
            found, folder = format_of(self.models[model])
        except UserError as error:
            raise UserError(f"distilled_by: {error}") from None
        return [str(path) for path in found.files(folder)]

    def model_of(self, part: str) -> str:
        """The folder of the model that translates a part."""
        return f"results/models/{slug(self.parts[part].distilled_by)}"

    def text_of(self, part: str) -> list[str]:
        """The file of the sentences that are translated, itself or its download; none of documentation."""
        source = self.parts[part].source
        return [] if source is None else [str(source.on_disk(Path("results/downloads")))]

    def flags_of(self, part: str) -> list[str]:
        """The same as flags of the command."""
        source = self.parts[part].source
        member = ["--member", source.member] if source and source.member else []
        return [word for path in self.text_of(part) for word in ("--text", path)] + member

"""What a vocabulary or labels are made of, in memory or in two files: the content, and facts beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from heads.base.checksums import checksum
from heads.base.files import UserError, atomic_path, current_names, read_json, write_json_with_checksum

CHECKSUM = "model_sha256"


def write_model(model: Path, content: bytes, imported: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Write a model as it is, and beside it its checksum and other facts of an `imported` one, see `Vocabulary`."""
    with atomic_path(model) as temporary:
        temporary.write_bytes(content)
    write_json_with_checksum(facts_beside(model), {CHECKSUM: checksum([content]), **imported})


def facts_beside(model: Path) -> Path:
    """The file with the checksum of a SentencePiece model: `source.json` beside `source.model`."""
    return model.with_suffix(".json")


@dataclass(frozen=True, slots=True)
class Stored:
    """What a vocabulary or labels are made of, whether in files or in memory."""

    content: bytes
    """The file itself, such as SentencePiece's model."""
    facts: Mapping[str, Any]
    """What stands in the file beside it, see `Vocabulary`."""

    def write(self, model: Path) -> None:
        """Write the content to `model`, and the facts with its checksum beside it."""
        write_model(model, self.content, {key: value for key, value in self.facts.items() if key != CHECKSUM})


def stored_at(model: Path) -> Stored:
    """What was written to `model` and beside it. Raises UserError if it is missing or damaged."""
    try:
        content, facts = model.read_bytes(), current_names(read_json(facts_beside(model)))
        if facts.get(CHECKSUM) != checksum([content]):
            raise ValueError("its checksum is wrong")
    except (OSError, ValueError, UserError) as error:
        raise UserError(
            f"{model} or {facts_beside(model).name} beside it is missing or damaged: delete both and run the stage "
            "that made them again."
        ) from error
    return Stored(content, facts)

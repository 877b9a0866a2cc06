"""What a third-party model is imported with: its vocabularies in our ids, its original files, and where it is from."""

import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from heads.base.checksums import sha256_of
from heads.base.files import write_json_with_checksum
from heads.base.names import SIDES
from heads.interop.hub import LICENCES
from heads.text.added import Added, pattern_of
from heads.text.renumbering import renumbered
from heads.text.stored import Stored
from heads.text.vocabulary import ADDED, PREFIX, ROWS, SUFFIX
from heads.translation.model_folder import ABOUT, PRETRAINED


@dataclass(frozen=True)
class Origin:
    """Where a third-party model is from."""

    folder: Path
    files: Sequence[Path]
    """All of its files that are read, from the folder."""
    describing: Collection[str]
    """Names of those to keep a copy of, besides its licences."""
    more: Mapping[str, Any]
    """Facts about it, such as the search settings of its authors."""

    @cached_property
    def about(self) -> dict[str, Any]:
        """Its name, licence and further facts."""
        licence = licence_of(self.folder / LICENCES[0])
        # A model from the hub is a link in our cache, to a folder that has the name of a commit.
        folder = self.folder if self.folder.is_symlink() else self.folder.resolve()
        return {"name": folder.name, "license": licence, **self.more}

    @cached_property
    def named(self) -> dict[str, Path]:
        """The files by their paths in the folder."""
        return {path.relative_to(self.folder).as_posix(): path for path in self.files}

    @cached_property
    def digests(self) -> dict[str, str]:
        """The SHA-256 of each file."""
        return {name: sha256_of(path) for name, path in self.named.items()}

    def write(self, place: Path) -> None:
        """Write the description, licence and origin of the model into a subfolder of `place`."""
        beside = place / PRETRAINED
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        for name, path in self.named.items():
            if name in (*self.describing, *LICENCES):
                (beside / name).parent.mkdir(exist_ok=True)
                shutil.copyfile(path, beside / name)
        write_json_with_checksum(beside / ABOUT, {**self.about, "files_sha256": self.digests})


@dataclass(frozen=True, slots=True)
class Vocabularies:
    """The vocabularies of source and target, or subwords and labels, in our ids, and where they are from."""

    source: Stored
    target: Stored
    origin: Origin

    def write(self, place: Path) -> None:
        """Write both into a folder, and the model's original files into a subfolder."""
        for side, stored in zip(SIDES, (self.source, self.target), strict=True):
            stored.write(place / f"{side}.model")
        self.origin.write(place)


def sentencepiece_in_our_ids(
    content: bytes,
    names: Sequence[str],
    origin: Path,
    added: Mapping[str, Added],
    prefix: Sequence[int],
    suffix: Sequence[int] = (),
    signs: Collection[str] = (),
) -> Stored:
    """A SentencePiece model with our ids, and what else its texts have.

    origin: its file. added: subwords that texts are split at. signs: names of special tokens.
    """
    ids = {name: number for number, name in enumerate(names)}
    added = {name: one for name, one in added.items() if name in ids}
    special = {*signs, *(name for name, one in added.items() if one.special)}
    no_text = {number for name, number in ids.items() if name in special} | {*suffix}
    texts = {ids[name] for name in added if name not in special}
    more: dict[str, Any] = {ROWS: len(names), PREFIX: [*prefix], SUFFIX: [*suffix]}
    if added:
        more[ADDED] = pattern_of(added)
    return Stored(renumbered(content, names, origin, no_text, texts), more)


def licence_of(card: Path) -> str:
    """The licence in the header of a model card; empty if it names none."""
    try:
        text = card.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    head: Sequence[str] = text.split("---", 2)[1:2] if text.startswith("---") else ()
    found = re.search(r"^license: *(\S+)", head[0], re.MULTILINE) if head else None
    return found[1].strip("\"'") if found else ""

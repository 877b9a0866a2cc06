"""Import an M2M100, NLLB, BART or mBART into a folder of ours: its languages, vocabularies and original files."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heads.base.fairseq import DESCRIBING, MERGES, files_of
from heads.base.files import UserError
from heads.base.marian import VOCAB
from heads.base.names import SIDES
from heads.text.byte_subwords import described_subwords, write_byte_subwords
from heads.text.renumbering import renumbered
from heads.text.vocabulary import PREFIX, ROWS, write_model
from heads.translation.fairseq_folder import FairseqFolder
from heads.translation.from_marian import numberings_of
from heads.translation.importing import searched_by_its_authors, write_origin

SHOWN = 6
"""Number of languages that an error message lists."""


@dataclass(frozen=True, slots=True)
class Beginnings:
    """Our ids of the subwords that texts begin with, such as their language."""

    source: int
    target: int
    forced: bool
    """Whether a search has to begin with the target's, or is free to."""


def beginnings_of(folder: FairseqFolder, source: str, target: str) -> Beginnings:
    """The subwords that texts in these languages begin with; for a BART without languages, its BOS.

    Raises UserError if a language is missing, unknown, or given to a model without languages.
    """
    rows = numberings_of(folder)[0].rows
    if folder.languages:
        numbers = [_language(folder, side, name) for side, name in zip(SIDES, (source, target), strict=True)]
        return Beginnings(rows.index(numbers[0]), rows.index(numbers[1]), forced=True)
    if source or target:
        raise UserError(
            f"{folder.path} has no languages to choose from: leave out --source-language and --target-language."
        )
    start, forced = folder.config["bos_token_id"], folder.generation.get("forced_bos_token_id")
    if start not in rows or forced not in (None, start):
        raise UserError(f"{folder.path}: translations begin with {start} or {forced}, which is not a subword.")
    return Beginnings(rows.index(start), rows.index(start), forced is not None)


def _language(folder: FairseqFolder, side: str, name: str) -> int:
    """The model's own id of the language of a side."""
    known, flag = folder.languages, f"--{side}-language"
    if name in known:
        return known[name]
    near = [other for other in known if name and other.startswith(name)]
    near = near or difflib.get_close_matches(name, known, SHOWN, 0.3)
    some = ", ".join([*near, *(other for other in known if other not in near)][:SHOWN])
    if name:
        raise UserError(f"{folder.path} does not know language {name}: give {flag} as it calls it, such as {some}.")
    raise UserError(f"{folder.path} knows {len(known)} languages: give {flag}, such as {some}.")


def write_fairseq_vocabularies(folder: FairseqFolder, place: Path, source: str, target: str) -> None:
    """Write the vocabulary of both sides into a folder, and the model's original files into a subfolder.

    Raises UserError as `beginnings_of` does.
    """
    begins = beginnings_of(folder, source, target)
    names = numberings_of(folder)[0].names
    for side, first in zip(SIDES, (begins.source, begins.target), strict=True):
        _write_vocabulary(folder, place / f"{side}.model", names, first)
    about: dict[str, Any] = {
        "prefix": names[begins.source],
        "target_prefix": names[begins.target] if begins.forced else "",
    }
    about["model_type"] = folder.config["model_type"]
    about |= {"source_language": source, "target_language": target, **searched_by_its_authors(folder)}
    write_origin(folder.path, files_of(folder.path), DESCRIBING, place, about)


def _write_vocabulary(folder: FairseqFolder, model: Path, names: Sequence[str], first: int) -> None:
    if folder.by_bytes:
        write_byte_subwords(model, described_subwords(folder.path, VOCAB, MERGES), names, first)
        return
    signs = {number for number, name in enumerate(names) if name in folder.signs}
    content = renumbered(folder.segmenters[0], names, folder.path, signs)
    write_model(model, content, {ROWS: len(names), PREFIX: [first]})

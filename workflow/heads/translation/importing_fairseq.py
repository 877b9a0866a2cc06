"""Import an M2M100, NLLB, BART or mBART into a folder of ours: its languages, vocabularies and original files."""

from __future__ import annotations

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
from heads.text.special_ids import EOS
from heads.text.vocabulary import PREFIX, ROWS, SUFFIX, write_model
from heads.translation.fairseq_folder import FairseqFolder, language_of
from heads.translation.from_marian import numberings_of
from heads.translation.importing import searched_by_its_authors, write_origin


@dataclass(frozen=True, slots=True)
class Frame:
    """Our ids of the subwords that texts begin and end with, such as their language."""

    source: Sequence[int]
    target: Sequence[int]
    forced: bool = False
    """Whether a search has to begin with the target's, or is free to."""
    suffix: Sequence[int] = ()
    """What sources end with, before EOS."""


def frame_of(folder: FairseqFolder, source: str, target: str) -> Frame:
    """The subwords that texts in these languages begin and end with; for a BART without languages, its BOS.

    Raises UserError if a language is missing, unknown, or given to a model without languages.
    """
    rows = numberings_of(folder)[0].rows
    if folder.spoken:
        return Frame((), (), suffix=(rows.index(folder.config["eos_token_id"]),))
    if folder.languages:
        numbers = [language_of(folder, side, name) for side, name in zip(SIDES, (source, target), strict=True)]
        return Frame((rows.index(numbers[0]),), (rows.index(numbers[1]),), forced=True)
    if source or target:
        raise UserError(
            f"{folder.path} has no languages to choose from: leave out --source-language and --target-language."
        )
    start, forced = folder.config["bos_token_id"], folder.generation.get("forced_bos_token_id")
    if start not in rows or forced not in (None, start):
        raise UserError(f"{folder.path}: translations begin with {start} or {forced}, which is not a subword.")
    return Frame((rows.index(start),), (rows.index(start),), forced is not None)


def write_fairseq_vocabularies(folder: FairseqFolder, place: Path, source: str, target: str) -> None:
    """Write the vocabulary of both sides into a folder, and the model's original files into a subfolder.

    Raises UserError as `frame_of` does.
    """
    frame, names = frame_of(folder, source, target), [numbering.names for numbering in numberings_of(folder)]
    _write_vocabulary(folder, place / "source.model", names[0], frame.source, frame.suffix)
    _write_vocabulary(folder, place / "target.model", names[1], frame.target)
    about: dict[str, Any] = {
        "prefix": "".join(names[0][number] for number in frame.source),
        "suffix": [names[0][number] for number in (*frame.suffix, EOS)] if frame.suffix else [],
        "target_prefix": "".join(names[1][number] for number in frame.target) if frame.forced else "",
    }
    about["model_type"] = folder.config["model_type"]
    about |= {"source_language": source, "target_language": target, **searched_by_its_authors(folder)}
    write_origin(folder.path, files_of(folder.path), DESCRIBING, place, about)


def _write_vocabulary(
    folder: FairseqFolder, model: Path, names: Sequence[str], prefix: Sequence[int], suffix: Sequence[int] = ()
) -> None:
    if folder.by_bytes:
        write_byte_subwords(model, described_subwords(folder.path, VOCAB, MERGES), names, prefix[0])
        return
    signs = {number for number, name in enumerate(names) if name in folder.signs} | {*suffix}
    content = renumbered(folder.segmenters[0], names, folder.path, signs)
    write_model(model, content, {ROWS: len(names), PREFIX: [*prefix], SUFFIX: [*suffix]})

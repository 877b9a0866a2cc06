"""Import the vocabularies and original files of a Marian, M2M100, NLLB, BART or mBART into a folder of ours."""

import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heads.base import fairseq, marian
from heads.base.files import UserError, write_sealed_json
from heads.base.names import SIDES
from heads.base.seals import sha256_of
from heads.text.renumbering import renumbered
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.text.vocabulary import PREFIX, ROWS, SUFFIX, write_model
from heads.text.wordpieces import described_subwords, write_byte_subwords
from heads.translation.authors_search import searched_by_its_authors, unused
from heads.translation.fairseq_folder import FairseqFolder, language_of
from heads.translation.from_marian import Numbering, numberings_of
from heads.translation.marian_folder import MarianFolder
from heads.translation.model_folder import ABOUT, PRETRAINED

LANGUAGE = re.compile(">>.+<<")
"""A subword that names the target language."""


def write_vocabularies(folder: MarianFolder, place: Path, prefix: str) -> None:
    """Write both SentencePiece models into a folder, and the model's original files into a subfolder.

    Raises UserError if the vocabulary does not have the prefix, or needs one.
    """
    numberings = numberings_of(folder)
    first = prefix_of(folder, numberings[0], prefix)
    for side, ours, content in zip(SIDES, numberings, folder.segmenters, strict=True):
        more: dict[str, Any] = {ROWS: len(ours.rows)}
        if side == SIDES[0] and first:
            more[PREFIX] = first
        model = renumbered(content, ours.names, folder.path / f"{side}.spm")
        write_model(place / f"{side}.model", model, more)
    about = {"prefix": prefix, **searched_by_its_authors(folder.path, folder.generation)}
    write_origin(folder.path, marian.files_of(folder.path), marian.DESCRIBING, place, about)


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
    about |= {
        "source_language": source,
        "target_language": target,
        **searched_by_its_authors(folder.path, folder.generation),
    }
    write_origin(folder.path, fairseq.files_of(folder.path), fairseq.DESCRIBING, place, about)


def _write_vocabulary(
    folder: FairseqFolder, model: Path, names: Sequence[str], prefix: Sequence[int], suffix: Sequence[int] = ()
) -> None:
    if not folder.segmenters[0]:  # subwords are merged from bytes
        write_byte_subwords(model, described_subwords(folder.path, marian.VOCAB, fairseq.MERGES), names, prefix[0])
        return
    signs = {number for number, name in enumerate(names) if name in folder.signs} | {*suffix}
    content = renumbered(folder.segmenters[0], names, folder.path, signs)
    write_model(model, content, {ROWS: len(names), PREFIX: [*prefix], SUFFIX: [*suffix]})


def unused_of(folder: MarianFolder) -> list[str]:
    """The search settings of a model's authors that our search does not have, with their values."""
    rows = numberings_of(folder)[1].rows
    never = {rows[PAD], rows[UNK], rows[BOS]} - {rows[EOS]}
    if not isinstance(folder, FairseqFolder):
        told = unused(folder.generation, never, rows[BOS], rows[EOS])
        first = folder.generation.get("forced_bos_token_id")
        return told if first is None else [*told, f"forced_bos_token_id {first}"]
    return unused(folder.generation, never, None if folder.languages else rows[BOS], rows[EOS])


def write_origin(
    folder: Path, files: Sequence[Path], describing: Collection[str], place: Path, more: Mapping[str, Any]
) -> None:
    """Write the description, licence and origin of a third-party model into a subfolder of `place`.

    files: all of its files that were read, from `folder`. describing: names of those to copy. more: further facts.
    """
    beside, named = place / PRETRAINED, {path.relative_to(folder).as_posix(): path for path in files}
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    for name, path in named.items():
        if name in (*describing, *marian.LICENCES):
            (beside / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(path, beside / name)
    about = {"name": folder.resolve().name, "license": licence_of(folder / marian.LICENCES[0]), **more}
    write_sealed_json(
        beside / ABOUT, {**about, "files_sha256": {name: sha256_of(path) for name, path in named.items()}}
    )


def prefix_of(folder: MarianFolder, ours: Numbering, prefix: str) -> list[int]:
    """Our ids of the prefix of each source sentence: none, or one."""
    languages = [name for name in ours.names if LANGUAGE.fullmatch(name)]
    named = ", ".join(languages[:5])
    if prefix and prefix not in languages:
        known = f"choose one of {named}" if languages else "leave the prefix out"
        raise UserError(f"{folder.path / marian.VOCAB} has no prefix {prefix}: {known}.")
    if languages and not prefix:
        raise UserError(f"{folder.path} translates into several languages: give one as the prefix, such as {named}.")
    return [ours.names.index(prefix)] if prefix else []


def licence_of(card: Path) -> str:
    """The licence in the header of a model card; empty if it names none."""
    try:
        text = card.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    head: Sequence[str] = text.split("---", 2)[1:2] if text.startswith("---") else ()
    found = re.search(r"^license: *(\S+)", head[0], re.MULTILINE) if head else None
    return found[1].strip("\"'") if found else ""

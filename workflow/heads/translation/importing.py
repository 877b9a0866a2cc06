"""Import the vocabularies and original files of a Marian, M2M100, NLLB, BART or mBART into a folder of ours."""

import json
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
from heads.text.added import Added, pattern_of
from heads.text.renumbering import renumbered
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.text.vocabulary import ADDED, PREFIX, ROWS, SUFFIX, write_model
from heads.text.wordpieces import described_subwords, library, write_described_subwords
from heads.translation.authors_search import searched_by_its_authors, unused
from heads.translation.fairseq_folder import FairseqFolder, language_of
from heads.translation.from_marian import Numbering, numberings_of
from heads.translation.marian_folder import MarianFolder
from heads.translation.model_folder import ABOUT, DESCRIBED, PRETRAINED

LANGUAGE = re.compile(">>.+<<")
"""A subword that names the target language."""


def write_vocabularies(folder: MarianFolder, place: Path, prefix: str) -> None:
    """Write both SentencePiece models into a folder, and the model's original files into a subfolder.

    Raises UserError if the vocabulary does not have the prefix, or needs one.
    """
    numberings = numberings_of(folder)
    first = prefix_of(folder.path / (marian.VOCAB if folder.segmenters else marian.DESCRIBED), numberings[0], prefix)
    described = {} if folder.segmenters else _ended_by_eos(folder, numberings[0])
    for number, (side, ours) in enumerate(zip(SIDES, numberings, strict=True)):
        model, begins = place / f"{side}.model", first if side == SIDES[0] else []
        if folder.segmenters:
            content, origin = folder.segmenters[number], folder.path / f"{side}.spm"
            write_sentencepiece(model, content, ours.names, origin, folder.added, begins)
        else:
            write_described_subwords(model, described, ours.names, begins)
    about = {"prefix": prefix, **_cutting(folder), **searched_by_its_authors(folder.path, folder.generation)}
    write_origin(folder.path, marian.files_of(folder.path), marian.DESCRIBING, place, about)


def _cutting(folder: MarianFolder) -> dict[str, Any]:
    """Facts about how texts are cut, for the pages of exports, where it is not by SentencePiece alone."""
    if not folder.segmenters:
        return {DESCRIBED: True}
    return {ADDED: pattern_of(folder.added)} if folder.added else {}


def _ended_by_eos(folder: MarianFolder, ours: Numbering) -> dict[str, Any]:
    """The description of a Marian's subwords. Raises UserError unless texts end with EOS and begin with nothing."""
    described = described_subwords(folder.path)
    found = library().Tokenizer.from_str(json.dumps(described)).encode("").ids
    if found != [ours.rows[EOS]]:
        raise UserError(
            f"{folder.path / marian.DESCRIBED} puts {found} around texts, not only {ours.names[EOS]} behind them: "
            "give a model whose texts end like that."
        )
    return described


def write_sentencepiece(
    model: Path,
    content: bytes,
    names: Sequence[str],
    origin: Path,
    added: Mapping[str, Added],
    prefix: Sequence[int],
    suffix: Sequence[int] = (),
    signs: Collection[str] = (),
) -> None:
    """Write a SentencePiece model with our ids, and what else its texts have.

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
    write_model(model, renumbered(content, names, origin, no_text, texts), more)


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
    about |= {"model_type": folder.config["model_type"], **_cutting(folder)}
    about |= {"source_language": source, "target_language": target}
    about |= searched_by_its_authors(folder.path, folder.generation)
    write_origin(folder.path, fairseq.files_of(folder.path), fairseq.DESCRIBING, place, about)


def _write_vocabulary(
    folder: FairseqFolder, model: Path, names: Sequence[str], prefix: Sequence[int], suffix: Sequence[int] = ()
) -> None:
    if not folder.segmenters:
        described = described_subwords(folder.path, marian.VOCAB, fairseq.MERGES)
        write_described_subwords(model, described, names, prefix, suffix)
        return
    content = folder.segmenters[0]
    write_sentencepiece(model, content, names, folder.path, folder.added, prefix, suffix, folder.signs)


def unused_of(folder: MarianFolder) -> list[str]:
    """The search settings of a model's authors that our search does not have, with their values."""
    target = numberings_of(folder)[1]
    rows = target.rows
    never = {rows[PAD], rows[UNK], rows[BOS], *rows[len(rows) - target.nameless :]} - {rows[EOS]}
    if not isinstance(folder, FairseqFolder):
        ignored = unused(folder.generation, never, rows[BOS], rows[EOS])
        first = folder.generation.get("forced_bos_token_id")
        return ignored if first is None else [*ignored, f"forced_bos_token_id {first}"]
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


def prefix_of(vocabulary: Path, ours: Numbering, prefix: str) -> list[int]:
    """Our ids of the prefix of each source sentence: none, or one. vocabulary: the file that has it or not."""
    languages = [name for name in ours.names if LANGUAGE.fullmatch(name)]
    named = ", ".join(languages[:5])
    if prefix and prefix not in languages:
        known = f"choose one of {named}" if languages else "leave the prefix out"
        raise UserError(f"{vocabulary} has no prefix {prefix}: {known}.")
    if languages and not prefix:
        raise UserError(
            f"{vocabulary.parent} translates into several languages: give one as the prefix, such as {named}."
        )
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

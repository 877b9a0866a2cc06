"""Import a Marian model of transformers into a folder of ours: its vocabularies and its original files."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.base.files import UserError, write_sealed_json
from heads.base.marian import DESCRIBING, LICENCES, VOCAB, files_of
from heads.base.names import SIDES
from heads.base.seals import sha256_of
from heads.text.renumbering import renumbered
from heads.text.vocabulary import PREFIX, ROWS, write_model
from heads.translation.beam_search import NEVER
from heads.translation.from_marian import Numbering, numberings_of
from heads.translation.marian_folder import MarianFolder
from heads.translation.model_folder import ABOUT, EARLY_STOPPING, PRETRAINED

SEARCH: Mapping[str, int | bool] = {"num_beams": 1, "length_penalty": 1, EARLY_STOPPING: False}
"""Settings of a model's search, with transformers' values for those that generation_config.json leaves out."""
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
    write_origin(
        folder.path, files_of(folder.path), DESCRIBING, place, {"prefix": prefix, **searched_by_its_authors(folder)}
    )


def searched_by_its_authors(folder: MarianFolder) -> dict[str, Any]:
    """The search settings of a model's authors. Raises UserError for values that no search can use."""
    search = {key: folder.generation.get(key) for key in SEARCH}
    search = {key: SEARCH[key] if value is None else value for key, value in search.items()}
    beam, exponent, ends = search.values()
    if not isinstance(beam, int) or isinstance(beam, bool) or beam < 1:
        wrong = "num_beams"
    elif not isinstance(exponent, int | float) or isinstance(exponent, bool) or not math.isfinite(exponent):
        wrong = "length_penalty"
    elif not isinstance(ends, bool) and ends != NEVER:
        wrong = EARLY_STOPPING
    else:
        return search
    raise UserError(f"{folder.path}: {wrong} of its generation is {search[wrong]!r}, which no search can use.")


def write_origin(
    folder: Path, files: Sequence[Path], describing: Collection[str], place: Path, more: Mapping[str, Any]
) -> None:
    """Write the description, licence and origin of a third-party model into a subfolder of `place`.

    files: all of its files that were read. describing: names of those to copy. more: further facts about it.
    """
    beside = place / PRETRAINED
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    for path in files:
        if path.name in (*describing, *LICENCES):
            shutil.copyfile(path, beside / path.name)
    about = {"name": folder.resolve().name, "license": licence_of(folder / LICENCES[0]), **more}
    write_sealed_json(beside / ABOUT, {**about, "files_sha256": {path.name: sha256_of(path) for path in files}})


def prefix_of(folder: MarianFolder, ours: Numbering, prefix: str) -> list[int]:
    """Our ids of the prefix of each source sentence: none, or one."""
    languages = [name for name in ours.names if LANGUAGE.fullmatch(name)]
    named = ", ".join(languages[:5])
    if prefix and prefix not in languages:
        known = f"choose one of {named}" if languages else "leave the prefix out"
        raise UserError(f"{folder.path / VOCAB} has no prefix {prefix}: {known}.")
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

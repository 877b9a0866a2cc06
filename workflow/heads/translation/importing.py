"""A Marian model of transformers into a folder of ours: model, vocabularies, and what came with it."""

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
"""What is known of a model's search, and what transformers takes for what generation_config.json leaves out."""
LANGUAGE = re.compile(">>.+<<")
"""A subword that names the language to translate into."""


def write_vocabularies(folder: MarianFolder, place: Path, prefix: str) -> None:
    """Write both SentencePiece models into a folder, and into one inside it what the model came with.

    Raises UserError where the vocabulary has no such prefix, or wants one.
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
    """How its authors search. Raises UserError for what no search can follow."""
    search = {key: folder.generation.get(key) for key in SEARCH}
    search = {key: SEARCH[key] if value is None else value for key, value in search.items()}
    beam, exponent, ends = search.values()
    if not isinstance(beam, int) or beam < 1:
        wrong = "num_beams"
    elif not isinstance(exponent, int | float) or not math.isfinite(exponent):
        wrong = "length_penalty"
    elif not isinstance(ends, bool) and ends != NEVER:
        wrong = EARLY_STOPPING
    else:
        return search
    raise UserError(f"{folder.path}: {wrong} of its generation is {search[wrong]!r}, which no search can follow.")


def write_origin(
    folder: Path, files: Sequence[Path], describing: Collection[str], place: Path, more: Mapping[str, Any]
) -> None:
    """Write what describes a model of others, its licence and where it is from into a folder inside `place`.

    files: all that were read of it. told: what else there is to say.
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
    """Our ids of what each source sentence is to begin with: none, or one."""
    languages = [name for name in ours.names if LANGUAGE.fullmatch(name)]
    named = ", ".join(languages[:5])
    if prefix and prefix not in languages:
        known = f"known are {named}" if languages else "leave the prefix out"
        raise UserError(f"{folder.path / VOCAB} has no prefix {prefix}: {known}.")
    if languages and not prefix:
        raise UserError(f"{folder.path} translates into several languages: give one of them as the prefix, as {named}.")
    return [ours.names.index(prefix)] if prefix else []


def licence_of(card: Path) -> str:
    """What a model's page says in its head of its licence; empty where it says nothing."""
    try:
        text = card.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    head: Sequence[str] = text.split("---", 2)[1:2] if text.startswith("---") else ()
    found = re.search(r"^license: *(\S+)", head[0], re.MULTILINE) if head else None
    return found[1].strip("\"'") if found else ""

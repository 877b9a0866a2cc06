"""Find the files of a Marian model in a folder: weights, vocabularies of source and target, shortlist.

Firefox, translateLocally, Bergamot and OPUS-MT each use their own file names; a `config*.yml` or `decoder.yml`, if
there is one, says which is which under `models`, `vocabs` and `shortlist`.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from heads.base.files import UserError
from heads.base.stand_ins import is_pointer, packed_files, refuse_pointers, way_to
from heads.interop.hub import CONFIG, LICENCES

VERSION = 1
ZIP = b"PK\x03\x04"
MAGIC = 0xF11A48D5013417F5
"""A `.bin` model begins with VERSION and a shortlist with MAGIC, both as uint64; an `.npz` is a ZIP."""
SEGMENTER, NUMBERS = ".spm", (".yml", ".yaml", ".json")
"""Endings of vocabularies: SentencePiece's, and those with nothing but the ids of subwords."""
MERGES = ".bpe"
"""Ending of the lists of merges in OPUS-MT's archives without SentencePiece."""
VOCAB = "vocab"
"""What is in the names of vocabularies, and in no other's."""
OPTIMIZER = ".optimizer.npz"
"""Ending of the file with an optimizer's state, which Marian writes beside the model that it trains."""
MODELS = (".bin", ".npz")
SHORTLISTS = "lex*.bin"
SOURCES, TARGETS = ("src", "source"), ("trg", "tgt", "target")
"""Beginnings of the names of separate source and target vocabularies."""

Settings = Sequence[Mapping[str, Any]]
"""What the settings in a folder say."""


@dataclass(frozen=True, slots=True)
class MarianParts:
    """The files of a model."""

    model: Path
    vocabularies: tuple[Path, Path]
    """SentencePiece models of source and target, often the same file."""
    shortlist: Path | None
    numbers: tuple[Path, Path] | None = None
    """Files with Marian's ids of their subwords; None: as SentencePiece numbers them."""


def is_marian(place: Path) -> bool:
    """Whether a path is a Marian model file or a folder with one, packed or not, and not in transformers' format."""
    if (place / CONFIG).is_file() or not place.is_dir():
        return _is_model(place)
    pointers = (path for path in place.iterdir() if path.suffix in MODELS and is_pointer(path))
    return bool(_models(place) or packed_files(place, *(f"*{ending}" for ending in MODELS)) or any(pointers))


def find_parts(place: Path) -> MarianParts:
    """The files of the model in folder `place`, or of the model file `place`.

    Raises UserError if one is missing, packed or a pointer of Git LFS, or if several could be meant.
    """
    folder = place if place.is_dir() else place.parent
    refuse_pointers(path for path in sorted(folder.glob("*")) if path.suffix in (*MODELS, SEGMENTER, ".yml"))
    if not place.is_dir() and not _is_model(place):
        raise UserError(f"{place} is not a Marian model: give its .bin or .npz, or the folder with it.")
    settings = [content for _, content in _settings(folder)]
    model, numbers = _model(folder, settings) if place.is_dir() else place, _numbers(folder, settings)
    return MarianParts(model, _vocabularies(folder, settings, numbers), _shortlist(folder, settings), numbers)


def model_files(parts: MarianParts) -> list[Path]:
    """The model file, vocabularies, shortlist, licences, scripts, and all YAML and JSON files, even of one engine."""
    folder = parts.model.parent
    shortlist = [parts.shortlist] if parts.shortlist else []
    described = sorted([*folder.glob("*.yml"), *folder.glob("*.json"), *folder.glob("*.sh")])
    licences = [folder / name for name in LICENCES if (folder / name).is_file()]
    vocabularies = [*parts.vocabularies, *(parts.numbers or ())]
    return list(dict.fromkeys([parts.model, *vocabularies, *shortlist, *described, *licences]))


def _is_model(path: Path) -> bool:
    """Whether a file begins like a Marian model."""
    if path.suffix not in MODELS or path.name.endswith(OPTIMIZER) or not path.is_file():
        return False
    with path.open("rb") as stream:
        start = stream.read(8)
    return start.startswith(ZIP) if path.suffix == ".npz" else start == struct.pack("<Q", VERSION)


def is_shortlist(path: Path) -> bool:
    """Whether a file begins like a shortlist, whose name ends like that of a model."""
    with path.open("rb") as stream:
        return stream.read(8) == struct.pack("<Q", MAGIC)


def _models(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if _is_model(path)]


def _settings(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The settings in a folder's YAML files; those that are not YAML, or no settings, are left out."""
    for path in sorted(path for path in folder.glob("*.yml") if VOCAB not in path.name):
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, yaml.YAMLError):
            continue
        if isinstance(content, dict):
            yield path, content


def _named(folder: Path, names: object) -> list[Path]:
    """The files of the folder in a list of names, which may be paths on the machine where it was written."""
    named = [Path(name).name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return [folder / name for name in named if (folder / name).is_file()]


def _listed(folder: Path, settings: Settings, key: str) -> list[list[Path]]:
    """Files of the folder that its settings list under a key."""
    return [_named(folder, content.get(key)) for content in settings]


def decoding_of(model: Path) -> tuple[Path, Mapping[str, Any]]:
    """The settings that a model is decoded with, and their file: those that name it, or that alone name any."""
    found = [(path, content) for path, content in _settings(model.parent) if isinstance(content.get("models"), list)]
    own = [one for one in found if model in _named(model.parent, one[1]["models"])]
    return own[0] if own else found[0] if len(found) == 1 else (model, {})


def _model(folder: Path, settings: Settings) -> Path:
    """The only model of a folder, or the only one that settings name. Raises UserError if there is not just one."""
    named = {path for paths in _listed(folder, settings, "models") for path in paths if _is_model(path)}
    found = sorted(named) or _models(folder)
    if len(found) > 1:
        raise UserError(f"{folder} has several models, {_names(found)}: give the path of one.")
    if not found:
        raise UserError(f"{folder} has no Marian model, a .bin or .npz: {way_to(folder)}.")
    return found[0]


def _numbers(folder: Path, settings: Settings) -> tuple[Path, Path] | None:
    """The files with the ids of source and target subwords, if there are any. Raises UserError if they are unclear."""
    listed = _listed(folder, settings, "vocabs")
    if named := [paths for paths in listed if any(path.suffix in NUMBERS for path in paths)]:
        return named[0][0], named[0][-1]
    if any(listed):
        return None
    found = sorted(path for end in NUMBERS for path in folder.glob(f"*{VOCAB}*{end}"))
    source, target = ([path for path in found if _of_side(path, names)] for names in (SOURCES, TARGETS))
    if len(source) == len(target) == 1:
        return source[0], target[0]
    if len(found) > 1:
        raise UserError(f"{folder} has {_names(found)}: name those of source and target in a decoder.yml, as vocabs.")
    return (found[0], found[0]) if found else None


def _of_side(path: Path, names: Sequence[str]) -> bool:
    return not {*names}.isdisjoint(path.name.replace("-", ".").replace("_", ".").split("."))


def _vocabularies(folder: Path, settings: Settings, numbers: tuple[Path, Path] | None) -> tuple[Path, Path]:
    """SentencePiece models of source and target. Raises UserError if they are unclear or of another kind.

    numbers: files that settings name instead, if any.
    """
    listed = [] if numbers else _listed(folder, settings, "vocabs")
    pairs = {(paths[0], paths[1]) for paths in listed if len(paths) == 2}
    found = sorted(folder.glob(f"*{SEGMENTER}"))
    sources, targets = ([path for path in found if path.name.startswith(start)] for start in (SOURCES, TARGETS))
    if len(pairs) != 1 and len(sources) == len(targets) == 1:
        pairs = {(sources[0], targets[0])}
    if len(pairs) != 1 and len(found) == 1:
        pairs = {(found[0], found[0])}
    if len(pairs) != 1 and found:
        raise UserError(
            f"{folder} has {_names(found)}: rename those of source and target to srcvocab.spm and trgvocab.spm."
        )
    if not pairs and numbers:
        merges = sorted(folder.glob(f"*{MERGES}"))
        how = f", and texts are cut with {_names(merges)}" if merges else ""
        raise UserError(
            f"{numbers[0]} is not a SentencePiece vocabulary{how}: give a model with source{SEGMENTER} and "
            f"target{SEGMENTER}."
        )
    if not pairs:
        raise UserError(f"{folder} has no vocabulary, *{SEGMENTER}: {way_to(folder)}.")
    (pair,) = pairs
    if other := [path for path in pair if path.suffix != SEGMENTER]:
        raise UserError(f"{other[0]} is not a SentencePiece vocabulary: give a model with *{SEGMENTER} vocabularies.")
    return pair


def _shortlist(folder: Path, settings: Settings) -> Path | None:
    """The only shortlist in binary form, or the only one that settings name; None if there is not just one."""
    named = {path for paths in _listed(folder, settings, "shortlist") for path in paths if is_shortlist(path)}
    found = sorted(named) or [path for path in sorted(folder.glob("*.bin")) if is_shortlist(path)]
    packed = packed_files(folder, SHORTLISTS)
    if packed and not found:
        raise UserError(f"{folder} has its shortlist packed: unpack {_names(packed)}.")
    return found[0] if len(found) == 1 else None


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths)

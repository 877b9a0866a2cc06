"""Take subwords out of the files of a model in Marian's own format: weights, vocabularies and shortlist."""

import json
import struct
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heads.base.files import write_text
from heads.interop.firefox.file import write
from heads.interop.firefox.importing import NOTHING, FirefoxFolder, read_firefox
from heads.interop.firefox.parts import MAGIC
from heads.interop.firefox.shortlist import HEADER, Shortlist, checksum_of, read_shortlist
from heads.interop.firefox.vocabulary import read_vocabulary
from heads.interop.hub import DESCRIBED
from heads.interop.original import OriginalFiles
from heads.text.fewer_subwords import take_from_described, without_names

MULTIPLE = 8
"""Engines multiply by an output matrix whose rows are a multiple of this."""
SIZES = "dim-vocabs"
ROWS_OF = {"Wemb": (0, 0), "encoder_Wemb": (0, 0), "decoder_Wemb": (0, 1)} | {
    f"decoder_ff_logit_out_{part}": (1, 1) for part in ("W", "b")
}
"""Marian's weights with a row or column for each subword: which axis, and of which side, 0 source or 1 target."""


def filled_up(kept: Collection[int], size: int, ours: int = 2) -> list[int]:
    """Ids to keep, and the lowest others, so that without `ours` alone they are a multiple of `MULTIPLE`, if there are.

    size: of the vocabulary.
    """
    others = [number for number in range(size) if number not in kept]
    return sorted({*kept, *others[: (ours - len(kept)) % MULTIPLE]})


def take_from_firefox(folder: Path, kept: tuple[Sequence[int], Sequence[int]]) -> None:
    """Leave only these ids of ours, of source and target, in the files of a folder."""
    found = read_firefox(OriginalFiles(folder))
    rows = [
        sorted(numbering.rows[number] for number in ids if numbering.rows[number] != NOTHING)
        for numbering, ids in zip(found.numberings, kept, strict=True)
    ]
    shortlist = found.parts.shortlist
    lists = read_shortlist(shortlist, found.shape.vocabularies) if shortlist else None
    names = [{numbering.names[number] for number in ids} for numbering, ids in zip(found.numberings, kept, strict=True)]
    _write_model(found, rows)
    gone = [{*numbering.names} - own for numbering, own in zip(found.numberings, names, strict=True)]
    # One file is of both sides only where these keep the same.
    for path, own in dict(zip(found.parts.vocabularies, gone, strict=True)).items():
        path.write_bytes(without_names(path, own))
    if (path := found.path / DESCRIBED).is_file():
        take_from_described(path, gone[0] & gone[1])
    for path in {*(found.parts.numbers or ())}:
        _write_numbers(path, rows[(found.parts.numbers or ()).index(path)])
    if shortlist and lists:
        shortlist.write_bytes(written(fewer_in(lists, rows), shortlist.read_bytes()))


def _write_model(found: FirefoxFolder, rows: Sequence[Sequence[int]]) -> None:
    tensors, file = found.file.tensors(), found.file
    file = file.with_tensors({
        name: np.ascontiguousarray(tensors[name].take(rows[side], axis))
        for name, (axis, side) in ROWS_OF.items()
        if name in tensors
    })  # fmt: skip
    write(found.parts.model, file.with_option(SIZES, [len(ids) for ids in rows]))


def _write_numbers(path: Path, rows: Sequence[int]) -> None:
    place = {old: new for new, old in enumerate(rows)}
    found = sorted((place[number], name) for name, number in read_vocabulary(path).items() if number in place)
    lines = [f"{json.dumps(name, ensure_ascii=False)}: {number}" for number, name in found]
    write_text(path, f"{{{', '.join(lines)}}}\n" if path.suffix == ".json" else "".join(f"{line}\n" for line in lines))


def fewer_in(lists: Shortlist, rows: Sequence[Sequence[int]]) -> Shortlist:
    """The shortlist of a model with these subwords of source and target alone, renumbered."""
    place: NDArray[np.int64] = np.full(max(int(lists.targets.max(initial=0)), *rows[1]) + 1, NOTHING)
    place[[*rows[1]]] = np.arange(len(rows[1]))
    likely = [place[lists.targets[lists.offsets[row] : lists.offsets[row + 1]]] for row in rows[0]]
    likely = [own[own != NOTHING] for own in likely]
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in likely])])
    first = sum(row < lists.first for row in rows[1])
    return Shortlist(first, offsets, np.concatenate(likely).astype(np.uint32))


def written(lists: Shortlist, like: bytes) -> bytes:
    """A shortlist as a file; `like`: one that has as many candidates of a subword at most."""
    best = HEADER.unpack_from(like)[3]
    body = struct.pack("<4Q", lists.first, best, len(lists.offsets), len(lists.targets))
    body += lists.offsets.astype("<u8").tobytes() + lists.targets.astype("<u4").tobytes()
    return struct.pack("<2Q", MAGIC, checksum_of(body)) + body

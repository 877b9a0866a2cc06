"""Take subwords out of the original files of an imported model, so that exports in its own format have fewer too.

Original ids are renumbered in their order, as ours are: an import of the changed files gives our ids.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.base import bert, fairseq, marian, t5
from heads.base.files import write_text
from heads.formats.marian_parts import is_marian
from heads.model.shape import ModelShape
from heads.text.fewer_subwords import take_from_described, without_names
from heads.text.special_ids import BOS
from heads.translation.fairseq_folder import described_folder
from heads.translation.fewer_in_firefox import take_from_firefox
from heads.translation.from_marian import Numbering, numberings_of
from heads.translation.from_t5 import numbering_of
from heads.translation.marian_folder import read_object
from heads.translation.t5_folder import described_t5
from heads.translation.to_fairseq import languages_of

WITH_IDS = re.compile(r".*(_token_ids?|bad_words_ids|suppress_tokens)")
"""Keys of config.json and generation_config.json whose values are ids of subwords."""
STALE = (marian.SOURCE_SPM, marian.TARGET_SPM, marian.VOCAB, marian.TARGET_VOCAB, marian.DESCRIBED, bert.VOCAB)
"""Original vocabularies that no export reads, where ours are written instead."""


def take_from_files(came_with: Path, shape: ModelShape, kept: tuple[Sequence[int], Sequence[int]]) -> None:
    """Leave only these ids of ours, of source and target, in the original files of a model.

    shape: of the model with all subwords.
    """
    if not came_with.is_dir():
        return
    if fairseq.fits(came_with):
        rows = shape.target_subwords - bool(shape.start_subword)
        theirs = numberings_of(described_folder(came_with, languages_of(came_with), rows))[1]
        _take(came_with, theirs, kept[1], copied=bool(shape.start_subword))
    elif t5.fits(came_with):
        own = shape.target_subwords - (shape.start is not None)
        _take(came_with, numbering_of(described_t5(came_with, own)), kept[1], copied=shape.start is not None)
    elif is_marian(came_with):
        take_from_firefox(came_with, kept)
    else:
        for name in STALE:
            (came_with / name).unlink(missing_ok=True)


def _take(folder: Path, theirs: Numbering, kept: Sequence[int], *, copied: bool) -> None:
    """copied: whether our BOS has no row of its own there."""
    rows = sorted(theirs.rows[number] for number in kept if number != BOS or not copied)
    place = {old: new for new, old in enumerate(rows)}
    gone = {*theirs.names} - {theirs.names[number] for number in kept}
    for name in (t5.SEGMENTER, fairseq.SEGMENTER):
        if (path := folder / name).is_file():
            path.write_bytes(without_names(path, gone))
    if (path := folder / marian.DESCRIBED).is_file():
        take_from_described(path, gone)
    for name in (marian.VOCAB, marian.ADDED):
        _change(folder / name, lambda ids: {one: place[old] for one, old in ids.items() if old in place})
    _change(folder / marian.TOKENIZER, lambda content: _with_decoder(content, place))
    for name in (marian.CONFIG, marian.GENERATION):
        _change(folder / name, lambda content: _with_ids(content, place))
    _change(folder / marian.CONFIG, lambda content: {**content, "vocab_size": len(rows)})
    if (path := folder / fairseq.MERGES).is_file():
        lines = path.read_text(encoding="utf-8").split("\n")
        write_text(path, "\n".join(line for line in lines if _still_merges(line, gone)))


def _change(path: Path, changed: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change the object in a JSON file, if there is one."""
    if path.is_file():
        path.write_text(json.dumps(changed(read_object(path)), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _with_decoder(content: dict[str, Any], place: Mapping[int, int]) -> dict[str, Any]:
    """A tokenizer_config.json with other ids of added subwords."""
    described = content.get("added_tokens_decoder")
    if not described:
        return content
    numbered = {str(place[int(old)]): one for old, one in described.items() if int(old) in place}
    return {**content, "added_tokens_decoder": numbered}


def _with_ids(content: dict[str, Any], place: Mapping[int, int]) -> dict[str, Any]:
    """The settings with other ids; those of subwords that are gone are left out."""

    def renumbered(value: Any) -> Any:
        if isinstance(value, list):
            found = [renumbered(one) for one in value]
            return [one for one in found if one is not None and one != []]
        whole = isinstance(value, int) and not isinstance(value, bool)
        return place.get(value) if whole else value

    changed = {key: renumbered(value) if WITH_IDS.fullmatch(key) else value for key, value in content.items()}
    return {key: value for key, value in changed.items() if value is not None or content[key] is None}


def _still_merges(line: str, gone: Collection[str]) -> bool:
    """Whether a line of merges.txt has no subword that is gone."""
    parts = line.split(" ")
    return len(parts) != 2 or line.startswith("#version") or not any(one in gone for one in (*parts, "".join(parts)))

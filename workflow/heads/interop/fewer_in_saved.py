"""Take subwords out of the original files of an imported model, so that exports in its own format have fewer too.

Original ids are renumbered in their order, as ours are: an import of the changed files gives our ids.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.base.files import write_text
from heads.interop.bert.format import WORD_PIECES
from heads.interop.fairseq.format import MERGES
from heads.interop.fairseq.format import SEGMENTER as OF_FAIRSEQ
from heads.interop.hub import ADDED, CONFIG, DESCRIBED, GENERATION, TOKENIZER, VOCAB
from heads.interop.marian.format import SOURCE_SPM, TARGET_SPM, TARGET_VOCAB
from heads.interop.numbering import Numbering
from heads.interop.saved_folder import read_object
from heads.interop.t5.format import SEGMENTER as OF_T5
from heads.text.fewer_subwords import take_from_described, without_names
from heads.text.special_ids import BOS

WITH_IDS = re.compile(r".*(_token_ids?|bad_words_ids|suppress_tokens)")
"""Keys of config.json and generation_config.json whose values are ids of subwords."""
UNREAD = (SOURCE_SPM, TARGET_SPM, VOCAB, TARGET_VOCAB, DESCRIBED, WORD_PIECES)
"""Original vocabularies of Marian and BERT: no export reads them, since ours are written instead."""


def take_copies(folder: Path, *_: object) -> None:
    """Remove the original vocabularies of a folder, where those that an export writes are made from ours."""
    for name in UNREAD:
        (folder / name).unlink(missing_ok=True)


def take_named(folder: Path, theirs: Numbering, kept: Sequence[int], *, copied: bool) -> None:
    """Leave only these ids of ours in the files of a folder, which has the same subwords for source and target.

    theirs: its subwords in our ids. copied: whether our BOS has no row of its own there.
    """
    rows = sorted(theirs.rows[number] for number in kept if number != BOS or not copied)
    place = {old: new for new, old in enumerate(rows)}
    gone = {*theirs.names} - {theirs.names[number] for number in kept}
    for name in (OF_T5, OF_FAIRSEQ):
        if (path := folder / name).is_file():
            path.write_bytes(without_names(path, gone))
    if (path := folder / DESCRIBED).is_file():
        take_from_described(path, gone)
    for name in (VOCAB, ADDED):
        _change(folder / name, lambda ids: {one: place[old] for one, old in ids.items() if old in place})
    _change(folder / TOKENIZER, lambda content: _with_decoder(content, place))
    for name in (CONFIG, GENERATION):
        _change(folder / name, lambda content: _with_ids(content, place))
    _change(folder / CONFIG, lambda content: {**content, "vocab_size": len(rows)})
    if (path := folder / MERGES).is_file():
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

    def placed(value: Any) -> Any:
        """A number, or the numbers of a list, in their new places; those that are gone left out."""
        if isinstance(value, list):
            found = [placed(one) for one in value]
            return [one for one in found if one is not None and one != []]
        whole = isinstance(value, int) and not isinstance(value, bool)
        return place.get(value) if whole else value

    changed = {key: placed(value) if WITH_IDS.fullmatch(key) else value for key, value in content.items()}
    return {key: value for key, value in changed.items() if value is not None or content[key] is None}


def _still_merges(line: str, gone: Collection[str]) -> bool:
    """Whether a line of merges.txt has no subword that is gone."""
    parts = line.split(" ")
    return len(parts) != 2 or line.startswith("#version") or not any(one in gone for one in (*parts, "".join(parts)))

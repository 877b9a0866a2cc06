"""The formats of other people's models, as far as planning needs to know them: which one a folder is of, its files.

`heads.translation.readers` has what reads them. A new format is one line in FORMATS, and one there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heads.base import bert, fairseq, marian
from heads.base.files import UserError
from heads.base.names import CLASSIFICATION, TRANSLATION
from heads.base.packaged import place_of
from heads.formats import firefox

Heads = dict[str, tuple[int, int]]
"""Layers, and heads of a layer, by kind of attention."""


@dataclass(frozen=True, slots=True)
class Format:
    """What is known of a format without reading a weight."""

    name: str
    task: str
    fits: Callable[[Path], bool]
    """Whether a folder, or a file, is of it."""
    files: Callable[[Path], Sequence[Path]]
    """All that an import reads."""
    heads: Callable[[Path], Heads]
    """Empty where a folder does not say: the import, which reads all of it, reports what is wrong."""
    not_there: Callable[[Path], str]
    """What to say where there is no such folder."""


def _has_config(folder: Path) -> bool:
    return (folder / marian.CONFIG).is_file()


FORMATS = (
    Format("bert", CLASSIFICATION, _has_config, bert.files_of, bert.heads_of, bert.not_there),
    Format("fairseq", TRANSLATION, fairseq.fits, fairseq.files_of, marian.heads_of, fairseq.not_there),
    Format("firefox", TRANSLATION, firefox.fits, firefox.files_of, firefox.heads_of, marian.not_there),
    Format("marian", TRANSLATION, _has_config, marian.files_of, marian.heads_of, marian.not_there),
)
"""Of the formats of one task the last one has the word where none fits."""


def format_of(name: str, task: str = TRANSLATION) -> tuple[Format, Path]:
    """The format of a model of others, given by a path or a name such as firefox/en-pt, and where it lies.

    Raises UserError where there is nothing of that name.
    """
    place = place_of(name)
    formats = [each for each in FORMATS if each.task == task]
    found = next((each for each in formats if each.fits(place)), formats[-1])
    if not place.exists():
        raise UserError(found.not_there(place))
    return found, place

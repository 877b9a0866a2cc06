"""Corpora of a few lines in files, as entries of `corpora:`, and what is built or refused of them."""

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from heads.base.files import UserError
from heads.base.names import SPLITS
from heads.cli import trees as trees_command
from heads.corpus.build import build

Entry = dict[str, Any]
CLEANING = {"max_words": 5, "max_length_ratio": 3.0}
SAMPLE = {
    "train.en": ["a b c", "a b c", "", "1 2 3 4 5 6", "one", "dev one", "other", "last \u0007", "x y", "z"],
    "train.de": ["A B C", "A B C", "x", "1 2 3 4", "1 2 3 4", "free", "DEV  eins", "letzte", "X Y", "Z"],
    "dev.en": ["Dev One"],
    "dev.de": ["dev eins"],
    "test.en": ["test", "more"],
    "test.de": ["Test", "mehr"],
}
TREE = "1\tBirds\tbird\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tsing\tsing\tVERB\t_\t_\t0\troot\t_\t_\n\n"


def write(folder: Path, files: Mapping[str, Sequence[str] | bytes]) -> Path:
    """Write files of bytes as they are, or of lines, gzipped if their names end so; return their folder."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        if not isinstance(content, bytes):
            content = "".join(f"{line}\n" for line in content).encode()
            content = gzip.compress(content) if name.endswith(".gz") else content
        (folder / name).write_bytes(content)
    return folder


def part(name: str) -> list[Entry]:
    """One part in two files."""
    return [{"source": f"{name}.en", "target": f"{name}.de"}]


def entry(folder: Path, **changes: Any) -> Entry:
    """A corpus in the files of `folder`; a change to None takes a key out."""
    base = {"kind": "files", "source": "en", "target": "de", "folder": str(folder), "cleaning": CLEANING}
    changed = {**base, **{split: part(split) for split in SPLITS}, **changes}
    return {key: value for key, value in changed.items() if value is not None}


def built(folder: Path) -> set[str]:
    """The names of what is in a folder, if it is there."""
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def refused(given: Entry, out: Path, words: str) -> None:
    """Check that building ends in one sentence with these words and leaves nothing behind."""
    with pytest.raises(UserError, match=words) as caught:
        build(given, out, out.parent)
    assert "\n" not in str(caught.value)
    assert built(out) == set()


def write_trees(given: Entry, split: str, out: Path) -> Path:
    """Write the trees of a split by the command to `out`, beside the text as built; downloads are one folder above."""
    trees_command.run(given, split, downloads=out.parents[1], out=out)
    return out

"""The error for a corpus file that does not exist. Called by the rules, which know what other rules will make."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.config.corpus_entries import files_by_key, parse_corpus


def check_there(corpus: str, entry: Mapping[str, Any], paths: Sequence[str], made: Callable[[str], bool]) -> None:
    """Raise UserError, naming the key, if one of the paths is neither on disk nor made by a rule.

    entry: the whole entry of the corpus of that name. made: whether a rule makes a path.
    """
    keys = {str(file.path): key for key, file in reversed([*files_by_key(parse_corpus(entry))]) if file.path}
    for path in paths:
        if not Path(path).exists() and not made(path):
            raise UserError(
                f"corpora.{corpus}.{keys[path]} is {path}, which does not exist: correct it or corpora.{corpus}.folder,"
                f" or put the file there.{_nearest(Path(path), keys)}"
            )


def _nearest(path: Path, named: Collection[str]) -> str:
    """The end of the message: a file in the same folder with a similar name, unless it is one of those named."""
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    close = difflib.get_close_matches(path.name, [one.name for one in beside if str(one) not in named], n=1)
    return f" Did you mean {close[0]}?" if close else ""

"""What to say of a file of a corpus that is not there. The rules ask, who alone know what other rules will make."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.config.corpus_entries import files_by_key, parse_corpus


def check_there(corpus: str, entry: Mapping[str, Any], paths: Sequence[str], made: Callable[[str], bool]) -> None:
    """Raises UserError where one of the paths is neither on disk nor made by a rule: its key, and the way out.

    entry: of the corpus of that name, whole. made: whether a rule makes a path.
    """
    keys = {str(file.path): key for key, file in reversed([*files_by_key(parse_corpus(entry))]) if file.path}
    for path in paths:
        if not Path(path).exists() and not made(path):
            raise UserError(
                f"corpora.{corpus}.{keys[path]} is {path}, which is not there: correct it or corpora.{corpus}.folder, "
                f"or put the file there.{_nearest(Path(path), keys)}"
            )


def _nearest(path: Path, named: Collection[str]) -> str:
    """The end of the sentence: what lies there, is called nearly so and is none of the files that are named."""
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    close = difflib.get_close_matches(path.name, [one.name for one in beside if str(one) not in named], n=1)
    return f" Did you mean {close[0]}?" if close else ""

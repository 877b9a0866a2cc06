"""The same sentences are drawn whatever their order, and a resumed run does not repeat finished translations."""

from pathlib import Path
from typing import Any

import pytest

from heads.base.files import UserError, read_lines
from heads.corpus.documentation import documentation
from heads.translation import distilled
from heads.translation.distilled import drawn, write_distilled

LINES = [f"this is sentence {number} of many" for number in range(40)]


def test_so_many_are_drawn_whatever_the_order_and_parts_share_none() -> None:
    first, second = drawn(LINES, 10), drawn([*reversed(LINES), *LINES], 10, after=10)
    assert drawn(reversed(LINES), 10) == first and len({*first, *second}) == 20
    assert first != LINES[:10] and {*first} <= {*LINES}


def test_too_few_and_too_short_sentences_are_one_sentence() -> None:
    with pytest.raises(UserError, match=r"there are only 40 distinct sentences of 3 to 60 words .*, not 45"):
        drawn([*LINES, "too short", "word " * 61], 40, after=5)


class Stopped(Exception):
    """Stops a run."""


def backwards(calls: list[list[str]], *, stop_after: int | None = None) -> Any:
    """Stands for translation: reverses each line; stops after `stop_after` blocks."""

    def translated(lines: Any, translator: object, *, block_lines: int, report: object) -> Any:
        waiting = list(lines)
        for first in range(0, len(waiting), block_lines):
            if stop_after is not None and len(calls) == stop_after:
                raise Stopped
            calls.append(waiting[first : first + block_lines])
            yield ["" if line == LINES[7] else line[::-1] for line in calls[-1]]

    return translated


def test_a_run_that_was_stopped_goes_on_and_gives_what_one_that_was_not_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distilled, "BLOCK_LINES", 6)
    files = {name: (tmp_path / f"{name}.source.txt", tmp_path / f"{name}.target.txt") for name in ("whole", "stopped")}
    whole: list[list[str]] = []
    monkeypatch.setattr(distilled, "translated", backwards(whole))
    write_distilled(LINES, None, *files["whole"], print)  # type: ignore[arg-type]
    before: list[list[str]] = []
    monkeypatch.setattr(distilled, "translated", backwards(before, stop_after=3))
    with pytest.raises(Stopped):
        write_distilled(LINES, None, *files["stopped"], print)  # type: ignore[arg-type]
    unfinished = files["stopped"][1].with_suffix(".unfinished")
    unfinished.write_text(unfinished.read_text() + "half a li")  # a block that was being written
    after: list[list[str]] = []
    monkeypatch.setattr(distilled, "translated", backwards(after))
    write_distilled(LINES, None, *files["stopped"], print)  # type: ignore[arg-type]
    assert [line for block in (*before, *after) for line in block] == LINES
    assert [path.read_text() for path in files["stopped"]] == [path.read_text() for path in files["whole"]]
    assert not unfinished.exists()
    kept = [line for line in LINES if line != LINES[7]]
    assert read_lines(files["whole"][0]) == kept and read_lines(files["whole"][1]) == [line[::-1] for line in kept]


MODULE = '''"""This module does a simple thing well.  It reads a `file` and counts.

It has a second paragraph with prose in it.  Too short.

>>> This is an example and no prose at all.
"""

def run():
    """It has a second paragraph with prose in it.

    Parameters
    ----------
    This is what the function is given here.
    """

class Odd:
    "Returns the name of that thing, which is (usually) known."
'''


def test_documentation_gives_distinct_sentences_of_prose_without_importing(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "one.py").write_text(MODULE + "\nraise SystemExit('imported')\n")
    (tmp_path / "package" / "two.py").write_text("def broken(:\n")
    assert list(documentation(tmp_path)) == [
        "This module does a simple thing well.",
        "It has a second paragraph with prose in it.",
        "Returns the name of that thing, which is (usually) known.",
    ]

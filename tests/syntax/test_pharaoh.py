"""Word alignments in Pharaoh format: what is read, which word is which, and errors of one sentence."""

from pathlib import Path

import pytest

from heads.base.files import UserError, write_lines
from heads.syntax.pharaoh import Lines, aligned_pairs, in_text, line_of, lines_of

SOURCE = Lines("text.en", ["The boy's dog slept.", "Yes."])
TARGET = Lines("text.de", ["Des Jungen Hund schlief.", "Ja, ja."])
CUT = [
    Lines("cut.en", ["The boy 's dog slept .", "Yes ."]),
    Lines("cut.de", ["Des Jungen Hund schlief .", "Ja , ja ."]),
]


def pairs(links: list[str], words: list[Lines] | None = None) -> list[tuple[tuple[int, int], ...]]:
    return [pair.links for pair in aligned_pairs(Lines("l", links), [SOURCE, TARGET], words or CUT)]


def test_links_are_source_before_target_sorted_and_each_once() -> None:
    assert pairs(["3-2 0-0 1-1 2-0 3-2", ""]) == [((0, 0), (1, 1), (2, 0), (3, 2)), ()]
    assert line_of(((0, 0), (12, 3))) == "0-0 12-3"


def test_words_are_what_stands_between_blanks_and_have_their_place_in_the_text() -> None:
    found = aligned_pairs(Lines("l", ["5-4", ""]), [SOURCE, TARGET], CUT)[0]
    assert [SOURCE.lines[0][word.start : word.end] for word in found.source] == CUT[0].lines[0].split()
    assert found.source.text == SOURCE.lines[0] and found.target.text == TARGET.lines[0]
    assert pairs(["3-3", "0-1"], [SOURCE, TARGET]) == [((3, 3),), ((0, 1),)]


@pytest.mark.parametrize(
    ("links", "sentence"),
    [
        (["0-0", "0:0"], r"^l, line 2: '0:0' is not a link such as 0-1"),
        (["0-0 1", ""], r"^l, line 1: '1' is not a link"),
        (["-1-0", ""], r"^l, line 1: '-1-0' is not a link"),
        (["6-0", ""], r"^l, line 1: the link 6-0 lies beyond 6 source and 5 target words"),
        (["0-5", ""], r"^l, line 1: the link 0-5 lies beyond 6 source and 5 target words"),
        (["", "0-4"], r"^l, line 2: the link 0-4 lies beyond 2 source and 4 target words"),
        (["0-0"], r"^l has 1 lines and text\.en 2: give one line of links per pair\.$"),
        (["", "", ""], r"^l has 3 lines and text\.en 2"),
    ],
)
def test_what_is_no_alignment_of_the_text_is_refused_with_its_line(links: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        pairs(links)


@pytest.mark.parametrize("line", ["Yes &apos;", "Yes", "Yes . .", "yes ."])
def test_words_must_be_all_of_the_text_and_nothing_else(line: str) -> None:
    wrong = Lines("cut.en", [CUT[0].lines[0], line])
    with pytest.raises(UserError, match=r"^cut\.en, line 2 differs in characters from line 2 of text\.en"):
        pairs(["", ""], [wrong, CUT[1]])
    with pytest.raises(UserError, match=r"^cut\.de has 1 lines and text\.de 2: give the words of each line\.$"):
        pairs(["", ""], [CUT[0], Lines("cut.de", CUT[1].lines[:1])])


def test_a_text_cut_anywhere_is_put_together_again() -> None:
    found = in_text("a  b", ["a", "b"])
    assert found is None
    whole = in_text("ab c.", ["a", "b", "c", "."])
    assert whole is not None
    assert [(word.form, word.start, word.end, word.space_after) for word in whole] == [
        ("a", 0, 1, False), ("b", 1, 2, True), ("c", 3, 4, False), (".", 4, 5, False)]  # fmt: skip


def test_a_file_is_known_by_its_path(tmp_path: Path) -> None:
    write_lines(tmp_path / "links", ["0-0"])
    assert lines_of(tmp_path / "links") == (str(tmp_path / "links"), ["0-0"])

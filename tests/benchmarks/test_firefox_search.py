"""Speed of Firefox's translator: sentences come back in order, and speed is per subword."""

from types import SimpleNamespace
from typing import Any

import pytest
from firefox_search import ours, rows_of, timed
from firefox_ways import rows_of as rows_of_ways


@pytest.mark.parametrize("at_a_time", [1, 2, 64])
def test_every_translation_stands_in_the_place_of_its_sentence_and_batches_are_of_their_size(at_a_time: int) -> None:
    sizes = []

    def translate(sentences: list[list[str]]) -> list[str]:
        sizes.append(len(sentences))
        return [parts[0].upper() for parts in sentences]

    source = SimpleNamespace(encode=lambda lines: list(lines))
    translator: Any = SimpleNamespace(source=source, parts=lambda line: [line], translate=translate)
    assert ours(translator, at_a_time, ["ccc", "a", "dddd", "bb", "eeeee"]) == ["CCC", "A", "DDDD", "BB", "EEEEE"]
    assert sizes == {1: [1] * 5, 2: [2, 2, 1], 64: [5]}[at_a_time]


def test_a_way_that_says_twice_as_much_in_twice_the_time_is_as_fast() -> None:
    engine, other, slow = ("engine", 48), ("other", 24), ("slow", 24)
    rows = list(
        rows_of(
            {engine: 2.0, other: 4.0, slow: 8.0},
            {engine: 500, other: 1000, slow: 500},
            {engine: 20, other: 3, slow: 2},
            20,
        )
    )
    assert rows[0] == ("engine", "48", "10.0", "500", "4.000", "1.00", "20")
    assert rows[1] == ("other", "24", "5.0", "1000", "4.000", "1.00", "3")
    assert rows[2] == ("slow", "24", "2.5", "500", "16.000", "0.25", "2")


def test_ways_take_turns() -> None:
    said: list[str] = []
    ways: dict[tuple[str, int], Any] = {
        (name, 1): lambda lines, name=name: said.append(name + lines[0]) for name in "ab"
    }
    assert timed(ways, ["x"], 3).keys() == ways.keys() and said == ["ax", "bx"] * 3


def test_each_way_is_compared_with_its_own_first_folder_by_character_of_the_lines_that_were_timed() -> None:
    said, other = ["one two three four", "five six seven eight"], ["one two three four", "five six seven"]
    texts = {("a", "whole"): said, ("b", "whole"): other, ("a", "small"): other, ("b", "small"): said}
    seconds = dict(zip(texts, (3.0, 5.0, 1.0, 4.0), strict=True))
    sizes = dict(zip(texts, (1.0, 2.0, 0.5, 1.25), strict=True))
    found = {row[:2]: row[2:] for row in rows_of_ways(texts, seconds, sizes, said, 1)}
    assert found["a", "whole"] == ("1.0", "100.00", "100.00", "100.00", "0.3", "166666.7", "1.00")
    assert found["b", "small"][-3:] == ("0.2", "222222.2", "1.25")
    assert found["a", "small"][0] == "0.5" and found["a", "small"][-1] == "3.00"
    # The first way's small model says what the other's whole one says, and is held against its own whole one.
    assert found["a", "small"][1] == found["b", "whole"][1] == found["a", "small"][3] != found["b", "whole"][3]

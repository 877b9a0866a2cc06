"""Speed of Firefox's translator: sentences come back in order, and speed is per subword."""

from types import SimpleNamespace
from typing import Any

import pytest
from firefox_search import ours, rows_of, timed


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

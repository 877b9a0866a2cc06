"""Several processes give what one gives, in the same order, and draw no more than they need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count, islice

import pytest

from heads.base.pool import WAITING, chunks, in_order


def square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def half_of(number: int) -> int:
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number // 2


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_items_from_other_processes_where_there_are_several(workers: int) -> None:
    squares, processes = zip(*in_order(square, range(40), workers), strict=True)
    assert list(squares) == [n * n for n in range(40)]
    assert (os.getpid() in processes) == (workers == 1)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_endless_stream_is_drawn_only_as_far_as_it_is_worked_on(workers: int) -> None:
    drawn = []

    def stream() -> Iterator[int]:
        for number in count():
            drawn.append(number)
            yield number

    assert [result for result, _ in islice(in_order(square, stream(), workers), 3)] == [0, 1, 4]
    assert len(drawn) <= 3 + WAITING * workers


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_process_raises_is_raised_at_its_place(workers: int) -> None:
    results = in_order(half_of, [8, 4, 3, 2], workers)
    assert [next(results), next(results)] == [4, 2]
    with pytest.raises(ValueError, match="3 is odd"):
        next(results)


def test_chunks_hold_every_item_once_and_only_the_last_is_short() -> None:
    assert list(chunks(iter(range(7)), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(chunks([], 3)) == []

"""Several processes return the same results in the same order as one, and draw no more than needed."""

import os
import threading
import traceback
from collections.abc import Iterator
from itertools import count, islice

import pytest

from heads.base.pool import WAITING, ahead, chunks, in_order


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


@pytest.mark.parametrize("workers", [1, 2, None], ids=["here", "processes", "thread"])
def test_what_is_raised_elsewhere_is_raised_at_its_place_and_tells_where_it_came_from(workers: int | None) -> None:
    items = [8, 4, 3, 2]
    results = in_order(half_of, items, workers) if workers else ahead(half_of, items, 2)
    assert [next(results), next(results)] == [4, 2]
    with pytest.raises(ValueError, match="3 is odd") as raised:
        next(results)
    assert "in half_of" in "".join(traceback.format_exception(raised.value))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead")]


def test_one_thread_works_ahead_in_the_order_of_the_items_and_never_further_than_it_was_told() -> None:
    workers, made, drawn = set(), [], []

    def make(number: int) -> int:
        workers.add(threading.current_thread())
        made.append(number)
        return number * number

    def stream() -> Iterator[int]:
        for number in count():
            drawn.append(threading.current_thread())
            yield number

    results = ahead(make, stream(), 3)
    for expected in range(20):
        assert next(results) == expected * expected
        assert len(drawn) == expected + 4, "the one that was asked for, and three"
    results.close()
    assert made == list(range(len(made)))
    assert {*drawn} == {threading.current_thread()} and len(workers) == 1 and workers != {*drawn}
    assert not workers.pop().is_alive()


def test_what_is_worked_on_ahead_is_done_while_nobody_waits_for_it() -> None:
    done = threading.Event()

    def make(number: int) -> int:
        if number == 2:
            done.set()
        return number

    results = ahead(make, count(), 2)
    assert next(results) == 0
    assert done.wait(60), "two more than were asked for"
    results.close()


def test_no_more_and_no_fewer_come_of_few_items() -> None:
    for number in range(5):
        assert list(ahead(half_of, [2] * number, 3)) == [1] * number


def test_chunks_hold_every_item_once_and_only_the_last_is_short() -> None:
    assert list(chunks(iter(range(7)), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(chunks([], 3)) == []

"""Apply a function to many items in several processes, or ahead of time in a thread; order kept, memory flat."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice
from multiprocessing import get_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

WAITING = 3
"""Items in progress for each process: one being computed, one ready, one done and not yet taken."""


def in_order(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """`function(item)` for each item, in order; one worker runs in this process, several in processes of their own.

    Items are drawn only as results are taken, so the stream may be endless. `function` must be importable, or a partial
    of such a function. What it raises is raised here.
    """
    if workers == 1:
        yield from map(function, items)
        return
    # Not forked: the threads of a library that this process uses would be missing in the copy.
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield from _results(pool, function, items, WAITING * workers)


def ahead(function: Callable[[Item], Result], items: Iterable[Item], number: int) -> Generator[Result]:
    """`function(item)` for each item, in order; a thread computes up to `number` results ahead.

    Items are drawn in the thread that takes the results. What `function` raises is raised here. The other thread ends
    with this iterator: close it.
    """
    with ThreadPoolExecutor(1, "ahead") as pool:
        yield from _results(pool, function, items, number + 1)


def _results(pool: Executor, function: Callable[[Item], Result], items: Iterable[Item], most: int) -> Iterator[Result]:
    """A pool's results for the items, of which at most `most` are submitted at a time."""
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) == most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of `size`; the last one may be shorter."""
    stream = iter(items)
    while chunk := list(islice(stream, size)):
        yield chunk

"""The same function over many items in several processes, with the order kept and memory flat."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

WAITING = 3
"""Items under way for each process: one at work, one ready, one done and not yet taken."""


def in_order(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """`function(item)` of every item in the items' order; one worker works in this process, more in as many others.

    Items are drawn only as results are taken, so an endless stream is no danger. `function` must be importable, or a
    partial of such a function. What it raises is raised here.
    """
    if workers == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    # Not forked: the threads of a library that this process uses would be missing in the copy.
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) == WAITING * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of `size`, the last one shorter."""
    stream = iter(items)
    while chunk := list(islice(stream, size)):
        yield chunk
